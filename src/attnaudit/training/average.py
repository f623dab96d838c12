"""The exponential moving average of a model's weights, in a few launches a step whatever the number of tensors."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


class WeightAverage:
    """θ̄ ← β_t θ̄ + (1 - β_t) θ with β_t = min(β, (1 + t)/(10 + t)), so that the start is soon forgotten.

    timm's average walks through both state dictionaries in every step, work of the host that a small model on a GPU
    waits for; this one holds the lists of tensors. Buffers are copied.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self._own: list[Tensor] = list(self.module.parameters())
        self._theirs: list[Tensor] = list(model.parameters())
        self._buffers = list(zip(self.module.buffers(), model.buffers(), strict=True))

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after a step, counted from 0."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self._own, self._theirs, 1 - decay)
        for own, theirs in self._buffers:
            own.copy_(theirs)
