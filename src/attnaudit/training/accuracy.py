"""The accuracy of a classifier in training, on all examples of all ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn
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
