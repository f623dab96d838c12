"""Attention scores in blocks of rows, so that the tokens x tokens matrix is never stored whole."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.numerics.blocks import row_slices
from attnaudit.numerics.masks import Mask, later_keys, mask_rows

#: The number of scores per block: about a CPU's cache; enough to keep a GPU busy (64 MiB).
BLOCK = {"cpu": 1 << 20, "cuda": 1 << 24}


def row_blocks(like: Float[Tensor, "batch heads tokens dim"]) -> Iterator[slice]:
    """Slices of tokens with at most `BLOCK` scores each."""
    batch, heads, tokens, _ = like.shape
    return row_slices(tokens, batch * heads * tokens, BLOCK, like.device)


def score_block(
    query: Float[Tensor, "batch heads tokens dim"],
    key: Float[Tensor, "batch heads tokens dim"],
    rows: slice,
    *,
    mask: Mask | None,
    is_causal: bool,
    scale: float | None,
) -> Float[Tensor, "batch heads rows tokens"]:
    """The rows of QKᵀ·scale + mask; mask and causality as returned by `merged_mask`."""
    scores = query[..., rows, :] @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        tokens = key.shape[-2]
        scores = scores.masked_fill(later_keys(tokens, tokens, key.device, rows), -torch.inf)
    if mask is not None:
        shown = mask_rows(mask, rows)
        scores = scores.masked_fill(~shown, -torch.inf) if shown.dtype == torch.bool else scores + shown
    return scores
