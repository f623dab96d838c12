"""Attention masks: which query may see which key."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit.errors import ShapeError

#: A mask for SDPA: boolean, or added to the scores; its axes broadcast to (batch, heads, queries, tokens).
Mask = Tensor

#: Additive masks below this hide a key: libraries use -inf, the lowest finite number, -1e4 or -1e9.
HIDDEN = -1e3


def visible(mask: Mask) -> Bool[Tensor, "..."]:
    """True where a query sees a key."""
    if not (mask.dtype == torch.bool or mask.is_floating_point()):
        raise ShapeError(f"An attention mask must be boolean or floating-point, got {mask.dtype}.")
    return mask if mask.dtype == torch.bool else mask > HIDDEN


def additive(mask: Mask, dtype: torch.dtype) -> Mask:
    """A boolean mask as added to the scores, 0 or -inf; other masks unchanged."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def later_keys(queries: int, keys: int, device: torch.device, rows: slice = slice(None)) -> Bool[Tensor, "rows keys"]:
    """True where a key comes after the query, which a causal mask hides; for some rows of queries, or all."""
    return torch.arange(keys, device=device) > torch.arange(queries, device=device)[rows, None]


def mask_rows(mask: Mask, rows: slice) -> Mask:
    """These rows of a mask, or its only row if it is the same for all queries."""
    return mask if mask.shape[-2] == 1 else mask[..., rows, :]


def real_tokens(mask: Mask | None) -> Bool[Tensor, "..."] | None:
    """(…, tokens): False for padding, which no query sees."""
    return None if mask is None else visible(mask).any(dim=-2)


def merged_mask(mask: Mask | None, is_causal: bool, tokens: int) -> tuple[Mask | None, bool]:
    """Mask and causality for SDPA, which accepts only one of them: the causal mask is merged into a given mask.

    Only this case builds a tokens x tokens tensor.
    """
    if mask is None or not is_causal:
        return mask, is_causal
    hidden = False if mask.dtype == torch.bool else -torch.inf
    return mask.masked_fill(later_keys(tokens, tokens, mask.device), hidden), False


def visible_mean(
    rows: Float[Tensor, "batch heads tokens dim"], mask: Mask | None, is_causal: bool
) -> Float[Tensor, "batch heads tokens_or_1 dim"]:
    """For every token, the mean of `rows` over the tokens it may see; one row if that is the same for all tokens.

    Padding is seen by no token, so it never counts; under a causal mask this is a running mean.
    """
    mask, is_causal = merged_mask(mask, is_causal, rows.shape[-2])
    if is_causal:
        count = torch.arange(1, rows.shape[-2] + 1, device=rows.device, dtype=rows.dtype)
        return rows.cumsum(dim=-2) / count[:, None]
    if mask is None:
        return rows.mean(dim=-2, keepdim=True)
    weight = visible(mask).to(rows.dtype)
    return weight @ rows / weight.sum(dim=-1, keepdim=True).clamp_min(1)


def padding(mask: Mask | None, what: str) -> Bool[Tensor, "batch #heads 1 tokens"] | None:
    """The mask as one row per input, True for a real token, for a variant `what` that cannot mask single queries."""
    if mask is None:
        return None
    if mask.dim() < 2 or mask.shape[-2] != 1:
        raise ShapeError(
            f"{what} has no scores to mask: use a padding mask (batch, 1, 1, tokens) or is_causal=True, "
            f"got a mask of shape {tuple(mask.shape)}."
        )
    return visible(mask)
