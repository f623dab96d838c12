"""Scaled Attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import torch
from torch import Tensor, nn

from attnaudit.attention import functional
from attnaudit.attention.base import Attention, AttentionArguments
from attnaudit.errors import UsageError, unknown
from attnaudit.numerics.masks import Mask


class ScaledAttention(Attention):
    """softmax(QKᵀ/√d)(I - S)V, where S is learned, α·softmax(KKᵀ/√d), or exact.

    Args:
        dim: width of the model.
        num_heads: number of heads.
        form: `alpha` learns one factor per layer, `learned` one `tokens` x `tokens` matrix per head, `exact` has no
            parameters. Both learned forms start at zero, where the layer is softmax attention.
        tokens: the number of tokens of every input; required for `learned`.
        arguments: further arguments of timm's `Attention`.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int = 8,
        *,
        form: str = "alpha",
        tokens: int | None = None,
        **arguments: Unpack[AttentionArguments],
    ) -> None:
        super().__init__(dim, num_heads, **arguments)
        self.form = form
        device, dtype = arguments.get("device"), arguments.get("dtype")
        self.alpha: nn.Parameter | None = None
        self.matrix: nn.Parameter | None = None
        if form == "learned":
            if tokens is None or tokens < 1:
                raise UsageError(f'form="learned" needs the number of tokens (≥ 1), got tokens={tokens}.')
            self.matrix = nn.Parameter(torch.zeros(num_heads, tokens, tokens, device=device, dtype=dtype))
        elif form == "alpha":
            self.alpha = nn.Parameter(torch.zeros((), device=device, dtype=dtype))
        elif form != "exact":
            raise unknown("Scaled Attention form", form, ("alpha", "learned", "exact"))

    def mix(self, parts: Mapping[str, Tensor], x: Tensor, mask: Mask | None, is_causal: bool) -> Tensor:
        """Attend to the values (I - S)V."""
        return functional.scaled(
            parts["q"],
            parts["k"],
            parts["v"],
            matrix=self.matrix,
            alpha=self.alpha,
            mask=mask,
            is_causal=is_causal,
            dropout=self.dropout,
            observe=self.observe,
        )
