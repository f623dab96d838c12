"""Accuracy and loss on the test half."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from attnaudit.numerics.precision import autocast
from attnaudit.training.augmentation import DeviceAugmentation
from attnaudit.training.batches import Batches
from attnaudit.training.processes import Ranks


@dataclass(frozen=True)
class Score:
    """Mean cross-entropy, and the share of images whose class comes first."""

    loss: float
    accuracy: float
    images: int


@torch.no_grad()
def evaluate(model: nn.Module, batches: Batches, pixels: DeviceAugmentation, precision: str, ranks: Ranks) -> Score:
    """All images of all ranks, once; the model is afterwards in the mode it was in."""
    mode = model.training
    model.eval()
    sums = torch.zeros(3, dtype=torch.float64)
    for images, labels in batches.in_order():
        with autocast(images.device, precision):
            logits = model(pixels.normalised(images))
        loss = functional.cross_entropy(logits.float(), labels, reduction="sum")
        right = (logits.argmax(dim=1) == labels).sum()
        sums = sums.to(images.device) + torch.stack(
            [loss.double(), right.double(), loss.new_tensor(len(labels)).double()]
        )
    model.train(mode)
    loss_sum, right_sum, count = ranks.total(sums).tolist()
    return Score(loss_sum / count, right_sum / count, round(count))
