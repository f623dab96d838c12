"""Softmax attention, the reference."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from attnaudit.attention import functional
from attnaudit.attention.base import Attention
from attnaudit.attention.functional.masks import Mask


class SoftmaxAttention(Attention):
    """softmax(QKᵀ/√d)V with timm's names: a state dict of timm's `Attention` fits."""

    def mix(self, parts: Mapping[str, Tensor], x: Tensor, mask: Mask | None, is_causal: bool) -> Tensor:
        """Attend."""
        return functional.softmax(
            parts["q"],
            parts["k"],
            parts["v"],
            mask=mask,
            is_causal=is_causal,
            dropout=self.dropout,
            observe=self.observe,
        )
