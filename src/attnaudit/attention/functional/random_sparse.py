"""A sparse part at random positions: a control for RPC-Attention's choice of outliers."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit.numerics.masks import Mask, visible_mean

_LOW = 0xFFFFFFFF


def zeroed_at_random(
    residual: Float[Tensor, "batch heads tokens dim"],
    changed: Bool[Tensor, "batch heads tokens dim"],
    mask: Mask | None,
    is_causal: bool,
    seed: int | None,
) -> Float[Tensor, "batch heads tokens dim"]:
    """R with random entries set to zero, with the probability that an entry of the same head and input is `changed`.

    So R - zeroed_at_random(R) is on average as dense as the sparse part that it replaces, but independent of which
    entries are large. A token's probability is a mean over the tokens it may see, as is RPC-Attention's threshold.

    Args:
        residual: R.
        changed: where the replaced sparse part is not zero.
        mask: the attention mask.
        is_causal: whether later tokens are hidden.
        seed: seed of the positions, which are then the same for all inputs; None draws new ones from torch's generator.
    """
    with torch.autocast(residual.device.type, enabled=False):
        share = visible_mean(changed.to(residual.dtype).mean(dim=-1, keepdim=True), mask, is_causal)
    draws = torch.rand_like(residual) if seed is None else _fixed_draws(residual, seed)
    return torch.where(draws < share, 0, residual)


def _fixed_draws(like: Float[Tensor, "batch heads tokens dim"], seed: int) -> Float[Tensor, "heads tokens dim"]:
    """Numbers in [0, 1) from a hash of token, head and channel (two rounds of multiply and shift, 32 bits).

    Unlike a generator's, they are the same on every device and for any number of tokens, and torch can compile this.
    """
    heads, tokens, dim = like.shape[1:]
    bits = torch.arange(tokens * heads * dim, device=like.device) + seed * 0x9E3779B1
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = ((bits ^ ((bits & _LOW) >> shift)) * factor) & _LOW
    bits = bits ^ (bits >> 16)
    return (bits.to(like.dtype) / 2**32).view(tokens, heads, dim).transpose(0, 1)
