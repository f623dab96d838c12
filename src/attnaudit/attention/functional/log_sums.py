"""log g(k_i) = logsumexp over the keys a key sees, with its gradient, in memory linear in the tokens."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from attnaudit.attention.functional.blocks import mask_rows, row_blocks, score_block
from attnaudit.attention.functional.masks import Mask, one_mask, visible


def log_row_sums(
    key: Float[Tensor, "batch heads tokens dim"],
    *,
    mask: Mask | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Float[Tensor, "batch heads tokens"]:
    """l_i = log Σ_j exp(scale·k_i·k_j + mask), in float32 or wider; log N for a token that sees none.

    Fused attention kernels know these sums too but give them no gradient. Blocks of rows are recomputed on the way
    back, so neither way keeps more than a block of scores.
    """
    key = key.to(torch.promote_types(key.dtype, torch.float32))
    mask, is_causal = one_mask(mask, is_causal, key.shape[-2])

    def block(key: Tensor, rows: slice) -> Tensor:
        scores = score_block(key, key, rows, mask=mask, is_causal=is_causal, scale=scale)
        if mask is not None:  # a row of -inf alone has no logsumexp with a gradient
            scores = scores.masked_fill(~visible(mask_rows(mask, rows)).any(dim=-1, keepdim=True), 0)
        return torch.logsumexp(scores, dim=-1)

    return torch.cat(
        [checkpoint(block, key, rows, use_reentrant=False, preserve_rng_state=False) for rows in row_blocks(key)],
        dim=-1,
    )
