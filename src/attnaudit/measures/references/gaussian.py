"""Gaussian values, independent of the keys."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.measures.references.base import (
    PrimalReferenceInput,
    Reference,
    ReferenceInput,
    Role,
    generator_for,
    streams,
)
from attnaudit.numerics.randomness import normal_draws


def values(given: ReferenceInput) -> Tensor:
    """V ~ N(0, σ²) with the root mean square σ of the head's own values."""
    value = given.heads.value.double()
    names = streams(given.heads.index, given.seed, given.repeat, "gaussian")
    sizes: Tensor = value.square().mean(dim=(1, 2), keepdim=True).sqrt()
    return normal_draws(names, tuple(value.shape[1:]), value.device) * sizes


def weights(given: PrimalReferenceInput) -> PrimalHeads:
    """W_e, W_r ~ N(0, 1) with the head's own Λ.

    Not Gaussian E and R: these would leave the column space of K, which no weights can, and so be easily beaten.
    """
    heads = given.heads
    draws = [generator_for(entry, given.seed, given.repeat, "gaussian") for entry in heads.index]
    weight_e, weight_r = (
        torch.stack([torch.from_numpy(draw.standard_normal(weight.shape[1:])) for draw in draws]).to(weight)
        for weight in (heads.weight_e, heads.weight_r)
    )
    return replace(heads, weight_e=weight_e, weight_r=weight_r)


GAUSSIAN = Reference(
    "gaussian",
    "noise of the size of the head's values (Primal-Attention: weights drawn from N(0, 1))",
    Role.NULL,
    values,
    weights,
    uses_prediction=False,
)
