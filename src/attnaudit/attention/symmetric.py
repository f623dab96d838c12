"""Symmetric attention: keys serve as queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from torch import Tensor

from attnaudit.attention import functional
from attnaudit.attention.base import Attention, AttentionArguments
from attnaudit.attention.functional.masks import Mask


class SymmetricAttention(Attention):
    """softmax(KKᵀ/√d)V, the baseline of RPC-Attention (SymViT): no query projection."""

    def __init__(self, dim: int, num_heads: int = 8, **arguments: Unpack[AttentionArguments]) -> None:
        super().__init__(dim, num_heads, **arguments, projections="kv")

    def mix(self, parts: Mapping[str, Tensor], x: Tensor, mask: Mask | None, is_causal: bool) -> Tensor:
        """Attend with the keys as queries."""
        return functional.symmetric(
            parts["k"], parts["v"], mask=mask, is_causal=is_causal, dropout=self.dropout, observe=self.observe
        )
