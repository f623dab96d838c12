"""Softmax attention, with separate queries or with the keys as queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from attnaudit.numerics.masks import Mask, merged_mask


class AttentionPass(NamedTuple):
    """One softmax attention run by a variant, as passed to an observer.

    `original` is K before any change. Only RPC-Attention sets `sparse`, S, and `residual`, K - L - S.
    """

    query: Tensor
    key: Tensor
    mask: Mask | None
    is_causal: bool
    scale: float | None
    original: Tensor
    sparse: Tensor | None = None
    residual: Tensor | None = None


Observer = Callable[[AttentionPass], None]


def softmax(
    query: Float[Tensor, "batch heads tokens dim"],
    key: Float[Tensor, "batch heads tokens dim"],
    value: Float[Tensor, "batch heads tokens value_dim"],
    *,
    mask: Mask | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
    observe: Observer | None = None,
) -> Float[Tensor, "batch heads tokens value_dim"]:
    """H = A V with A the row-wise softmax of QKᵀ·scale + mask, scale 1/√d by default: the baseline of all variants."""
    mask, is_causal = merged_mask(mask, is_causal, key.shape[-2])
    if observe is not None:
        observe(AttentionPass(query, key, mask, is_causal, scale, key))
    return F.scaled_dot_product_attention(query, key, value, mask, dropout, is_causal, scale=scale)


def symmetric(
    key: Float[Tensor, "batch heads tokens dim"],
    value: Float[Tensor, "batch heads tokens value_dim"],
    *,
    mask: Mask | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
    observe: Observer | None = None,
) -> Float[Tensor, "batch heads tokens value_dim"]:
    """Attend with the keys as queries: H = softmax(KKᵀ·scale + mask) V (SymViT, Teo & Nguyen 2024, section 3).

    The scores are symmetric; the attention matrix is not, as its rows sum to one but its columns do not.
    """
    return softmax(key, key, value, mask=mask, is_causal=is_causal, dropout=dropout, scale=scale, observe=observe)
