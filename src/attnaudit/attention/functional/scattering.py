"""A sparse part at random places: the control of RPC-Attention in which nothing is pursued."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit.attention.functional.masks import Mask, visible_mean

_LOW = 0xFFFFFFFF


def scattered(
    residual: Float[Tensor, "batch heads tokens dim"],
    changed: Bool[Tensor, "batch heads tokens dim"],
    mask: Mask | None,
    is_causal: bool,
    seed: int | None,
) -> Float[Tensor, "batch heads tokens dim"]:
    """R with entries set to zero at random, each with the chance that one of its head and input is `changed`.

    So R - scattered(R) is on average as dense as the sparse part that it stands for, and knows nothing of which entries
    are large. The chance of a token is taken over the tokens that it may see, as RPC-Attention's threshold is.

    Args:
        residual: R.
        changed: where the sparse part that it stands for is not zero.
        mask: who sees whom.
        is_causal: whether later tokens are hidden.
        seed: of the places, which are then the same for all inputs; None draws them anew, from torch's generator.
    """
    with torch.autocast(residual.device.type, enabled=False):
        share = visible_mean(changed.to(residual.dtype).mean(dim=-1, keepdim=True), mask, is_causal)
    draws = torch.rand_like(residual) if seed is None else _fixed_draws(residual, seed)
    return torch.where(draws < share, 0, residual)


def _fixed_draws(like: Float[Tensor, "batch heads tokens dim"], seed: int) -> Float[Tensor, "heads tokens dim"]:
    """Numbers in [0, 1) by a hash of token, head and channel (two rounds of multiply and shift, 32 bits).

    Unlike those of a generator they are alike on every device and for every number of tokens, and do not stop torch's
    compiler.
    """
    heads, tokens, dim = like.shape[1:]
    bits = torch.arange(tokens * heads * dim, device=like.device) + seed * 0x9E3779B1
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = ((bits ^ ((bits & _LOW) >> shift)) * factor) & _LOW
    bits = bits ^ (bits >> 16)
    return (bits.to(like.dtype) / 2**32).view(tokens, heads, dim).transpose(0, 1)
