"""The kernel of softmax attention on a head's keys, in the log domain.

k(x, y) = exp(scale · x·y), g_i = Σ_j k(k_i, k_j), and the normalised Gram matrix of Teo & Nguyen (2024, Theorem 1),

    K_φ,ij = k(k_i, k_j) / (g_i g_j),        log K_φ,ij = s_ij - lse_i - lse_j .

Subtracting logarithms instead of dividing exponentials needs no guard and cannot overflow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit.errors import ShapeError
from attnaudit.numerics.products import product

Keys = Float[Tensor, "heads tokens dim"]
Square = Float[Tensor, "heads tokens tokens"]
PerToken = Float[Tensor, "heads tokens"]
PerHead = Float[Tensor, "heads"]


@dataclass(frozen=True)
class Gram:
    """K_φ = exp(log_scale) · matrix; the largest entry of `matrix` is 1, so that it cannot overflow."""

    matrix: Square
    log_scale: PerHead
    log_mass: PerToken  # log g_i


def check_keys(keys: Any, scale: Any = None) -> None:
    """Refuse what is no batch of heads: one of another rank would give numbers of something else.

    Raises:
        ShapeError: it is none, or there is not one scale for each head.
    """
    if not isinstance(keys, Tensor) or keys.dim() != 3 or keys.shape[1] == 0 or not keys.is_floating_point():
        raise ShapeError(f"keys must be a real tensor (heads, tokens, dim), got {_described(keys)}.")
    if scale is not None and (not isinstance(scale, Tensor) or scale.shape != keys.shape[:1]):
        raise ShapeError(
            f"scale must be a tensor with a number for each of {len(keys)} heads, got {_described(scale)}."
        )


def _described(value: Any) -> str:
    return f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def temperature(keys: Keys, scale: PerHead | None) -> Float[Tensor, "heads 1 1"]:
    """The factor of x·y in the exponent: `scale` if given, else 1/√d."""
    if scale is None:
        return keys.new_full((len(keys), 1, 1), 1 / math.sqrt(keys.shape[-1]))
    return scale.to(keys)[:, None, None]


def normalised_gram(keys: Keys, scale: PerHead | None = None) -> Gram:
    """K_φ of each head, in float64."""
    check_keys(keys, scale)
    keys = keys.double()
    scores = product(keys, keys.mT) * temperature(keys, scale)
    log_mass = torch.logsumexp(scores, dim=-1)
    logs = scores - log_mass[:, :, None] - log_mass[:, None, :]
    log_scale = logs.amax(dim=(1, 2))
    return Gram(torch.exp(logs - log_scale[:, None, None]), log_scale, log_mass)


def centred(gram: Square) -> Square:
    """(I - 1_N) K (I - 1_N) for symmetric K, by subtracting means: O(N²) instead of two dense products."""
    means = gram.mean(dim=-1)
    return (gram - means[:, :, None]).sub_((means - means.mean(dim=-1, keepdim=True))[:, None, :])


def finite_heads(matrix: Float[Tensor, "heads rows columns"]) -> Bool[Tensor, "heads"]:
    """Which heads have only finite entries: 0 · inf and 0 · NaN are not 0, so one sum shows it and cannot overflow."""
    return (matrix * 0).sum(dim=(1, 2)) == 0


def standardised(keys: Keys) -> Keys:
    """Each token's channels shifted to mean 0 and scaled to unbiased standard deviation 1, so that ‖k_i‖² = d - 1.

    The study's scripts do this; its text says "per dimension", which would be the other axis. Tokens whose squares
    overflow are divided by their largest entry first, which changes nothing but that.
    """
    result = (keys - keys.mean(dim=-1, keepdim=True)) / (keys.std(dim=-1, keepdim=True) + 1e-8)
    huge = ~keys.std(dim=-1).isfinite() & keys.isfinite().all(dim=-1)
    if huge.any():
        rows = keys[huge] / keys[huge].abs().amax(dim=-1, keepdim=True)
        result[huge] = (rows - rows.mean(dim=-1, keepdim=True)) / rows.std(dim=-1, keepdim=True)
    return result
