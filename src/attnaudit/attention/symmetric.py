"""Symmetric attention: the keys are also the queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from torch import Tensor

from attnaudit.attention import functional
from attnaudit.attention.base import Attention, AttentionArguments
from attnaudit.attention.temperature import scale_at
from attnaudit.numerics.masks import Mask


class SymmetricAttention(Attention):
    """softmax(KKᵀ/(t√d))V, the baseline of RPC-Attention (SymViT): no query projection.

    Args:
        dim: width of the model.
        num_heads: number of heads.
        temperature: t, which is 1 in SymViT; other values serve as a control with RPC-Attention's entropy but not its
            steps.
        arguments: further arguments of timm's `Attention`.
    """

    def __init__(
        self, dim: int, num_heads: int = 8, *, temperature: float = 1.0, **arguments: Unpack[AttentionArguments]
    ) -> None:
        super().__init__(dim, num_heads, **arguments, projections="kv")
        self.scale = scale_at(temperature, self.head_dim)

    def mix(self, parts: Mapping[str, Tensor], x: Tensor, mask: Mask | None, is_causal: bool) -> Tensor:
        """Attend with the keys as queries."""
        return functional.symmetric(
            parts["k"],
            parts["v"],
            mask=mask,
            is_causal=is_causal,
            dropout=self.dropout,
            scale=self.scale,
            observe=self.observe,
        )
