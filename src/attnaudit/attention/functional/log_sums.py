"""log g(k_i) = logsumexp over the keys that a key sees, with its gradient, in memory linear in the tokens."""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.attention.functional.blocks import row_blocks, score_block
from attnaudit.errors import UsageError
from attnaudit.numerics.masks import Mask, mask_rows, merged_mask, visible


class LogRowSums(torch.autograd.Function):
    """l = logsumexp(s), and ∂l_i/∂s_ij = exp(s_ij - l_i), the attention of the keys; both in blocks of rows.

    Fused attention kernels compute these sums too, but without a gradient.
    """

    @staticmethod
    def forward(key: Tensor, mask: Tensor | None, is_causal: bool, scale: float) -> Tensor:
        """The logsumexp of each row."""
        exact = key.to(torch.promote_types(key.dtype, torch.float32))
        return torch.cat(
            [_scores(exact, rows, mask, is_causal, scale).logsumexp(-1) for rows in row_blocks(key)], dim=-1
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor | None, bool, float], output: Tensor) -> None:
        """Save keys and sums, not scores."""
        key, mask, ctx.is_causal, ctx.scale = inputs
        ctx.save_for_backward(key, output, mask)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        """∂/∂k_m of Σ_i c_i l_i = scale·(c_m Σ_j a_mj k_j + Σ_i c_i a_im k_i), a the attention of the keys."""
        key, sums, mask = ctx.saved_tensors
        exact = key.to(sums.dtype)
        if mask is not None:  # the sum of a row that sees nothing is constant
            gradient = gradient * visible(mask).any(dim=-1)
        weighted = (gradient[..., None] * exact).to(key.dtype)
        result = torch.zeros_like(exact)
        for rows in row_blocks(key):
            scores = _scores(exact, rows, mask, ctx.is_causal, ctx.scale)
            attention = (scores - sums[..., rows, None]).exp_().to(key.dtype)
            result[..., rows, :] += gradient[..., rows, None] * (attention @ key)
            result += attention.mT @ weighted[..., rows, :]
        return (ctx.scale * result).to(key.dtype), None, None, None


def _scores(key: Tensor, rows: slice, mask: Mask | None, is_causal: bool, scale: float) -> Tensor:
    scores = score_block(key, key, rows, mask=mask, is_causal=is_causal, scale=scale)
    if mask is not None:  # logsumexp of a row of -inf has no gradient
        scores = scores.masked_fill(~visible(mask_rows(mask, rows)).any(dim=-1, keepdim=True), 0)
    return scores


def log_row_sums(
    key: Float[Tensor, "batch heads tokens dim"],
    *,
    mask: Mask | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Float[Tensor, "batch heads tokens"]:
    """l_i = log Σ_j exp(scale·k_i·k_j + mask), in float32 or wider; log N for a token that sees no key."""
    mask, is_causal = merged_mask(mask, is_causal, key.shape[-2])
    scale = 1 / math.sqrt(key.shape[-1]) if scale is None else scale
    if mask is not None and mask.requires_grad:
        raise UsageError("Exact Scaled Attention has no gradient for a learned mask: use form alpha or learned.")
    sums: Tensor = LogRowSums.apply(key, mask, is_causal, scale)  # type: ignore[no-untyped-call, unused-ignore]
    return sums
