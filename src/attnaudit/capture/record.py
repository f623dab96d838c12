"""What a recorder notes of one attention call, before it becomes `Heads`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class AttentionCall:
    """One softmax(QKᵀ·scale + bias)V as the model ran it: tensors `(*batch, heads, tokens, dim)`.

    Without a head axis (three dimensions) batch and heads are one axis, batch first. `error` is set where the
    certificate was computed by the recorder itself, which is needed where the model never shows the head outputs.
    `source` is what the attention layer was given, (rows, tokens, width), where the recorder could see it.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    scale: float | Tensor
    bias: Tensor | None
    error: float | None = None
    source: Tensor | None = None


@dataclass(frozen=True)
class Refusal:
    """An attention layer that is not captured, and why."""

    layer: str
    reason: str


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A boolean mask (True: may attend) as the additive bias it stands for; others unchanged."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
