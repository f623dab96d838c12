"""One attention call as the recorder saw it, before it becomes `Heads`."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class AttentionCall:
    """One softmax(QKᵀ·scale + bias)V as the model ran it: tensors `(*batch, heads, tokens, dim)`.

    Without a head axis (three dimensions), batch and heads share one axis, batch first. `error` is set if the recorder
    computed the replay error itself, which it must where the model never exposes the head outputs. `source` is the
    input of the attention layer, (rows, tokens, width), if the recorder saw it.
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
    """An attention layer that was not captured, and the reason."""

    layer: str
    reason: str
