"""The exponential moving average of a model's weights, in a few launches a step whatever the number of tensors."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


class WeightAverage:
    """θ̄ ← β_t θ̄ + (1 - β_t) θ with β_t = min(β, (1 + t)/(10 + t)), so that the start is soon forgotten.

    timm's average walks through both state dictionaries in every step, work of the host that a small model on a GPU
    waits for; this one holds the lists of tensors. Buffers are copied.

    1 - β_t lies on the device, so that an update is the same work in every step and can be recorded.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self._own: list[Tensor] = list(self.module.parameters())
        self._theirs: list[Tensor] = list(model.parameters())
        self._buffers = list(zip(self.module.buffers(), model.buffers(), strict=True))
        self._weight = torch.zeros((), device=self._own[0].device)

    def turn_to(self, step: int) -> None:
        """Say which step comes next, counted from 0."""
        self._weight.fill_(1 - min(self.decay, (1 + step) / (10 + step)))

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights after that step."""
        difference = torch._foreach_sub(self._theirs, self._own)
        torch._foreach_mul_(difference, self._weight)
        torch._foreach_add_(self._own, difference)
        for own, theirs in self._buffers:
            own.copy_(theirs)
