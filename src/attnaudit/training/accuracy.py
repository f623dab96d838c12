"""What classifiers share in training: accuracy on all examples of all ranks, and words on their classes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor, nn
from torch.nn import functional

from attnaudit.capture.capture import evaluating
from attnaudit.numerics.precision import autocast
from attnaudit.training.batching import Batch
from attnaudit.training.distributed import Ranks

#: How much larger batches are without gradients.
TEST_BATCH_FACTOR = 4


@dataclass(frozen=True)
class ClassifierScore:
    """Mean cross-entropy, and the share of examples whose most probable class is the right one."""

    loss: float
    accuracy: float
    examples: int


def classes_in_words(classes: int, labels: Int64[Tensor, "examples"], noun: str) -> str:
    """How many classes there are, and for how many of them there is nothing to learn from.

    An output without examples may be meant, as with a few classes of ImageNet, or be a gap in the numbers.
    """
    missing = classes - len(set(labels.tolist()))
    return f"{classes} classes" + (f", {missing} of them without a {noun}" if missing else "")


@torch.no_grad()
def evaluate_classifier(model: nn.Module, batches: Iterable[Batch], precision: str, ranks: Ranks) -> ClassifierScore:
    """The accuracy on the inputs of the model and their classes; the mode of the model is restored afterwards."""
    sums = torch.zeros(3, dtype=torch.float64)
    with evaluating(model):
        for inputs, labels in batches:
            with autocast(inputs.device, precision):
                logits = model(inputs)
            loss = functional.cross_entropy(logits.float(), labels, reduction="sum")
            right = (logits.argmax(dim=1) == labels).sum()
            sums = sums.to(inputs.device) + torch.stack(
                [loss.double(), right.double(), loss.new_tensor(len(labels)).double()]
            )
    loss_sum, right_sum, count = ranks.total(sums).tolist()
    return ClassifierScore(loss_sum / count, right_sum / count, round(count))
