"""The head's values in another direction of token space."""

from __future__ import annotations

import torch
from torch import Tensor

from attnaudit.kernel.solvers import eigenpairs
from attnaudit.measures.references.base import Reference, ReferenceInput, Role, streams
from attnaudit.numerics.randomness import normal_draws


def values(given: ReferenceInput) -> Tensor:
    """V = 1mᵀ + USRᵀ becomes 1mᵀ + (QU)SRᵀ with Q a random rotation of token space that keeps 1.

    QU is as likely as any other orthonormal columns that are orthogonal to 1, so it is drawn as such. Mean and singular
    values stay, and so do all products of columns; what the values have to do with the keys is lost. S and R are the
    eigenpairs of the products of columns, with the largest entry of each column of R positive, so that the same noise
    gives the same values on every device.
    """
    value = given.heads.value.double()
    mean = value.mean(dim=1, keepdim=True)
    rank = min(value.shape[1] - 1, value.shape[2])
    squares, right = (part[..., value.shape[2] - rank :] for part in eigenpairs((value - mean).mT @ (value - mean)))
    largest = right.gather(1, right.abs().argmax(dim=1, keepdim=True))
    names = streams(given.heads.index, given.seed, given.repeat, "rotated")
    noise = normal_draws(names, (value.shape[1], rank), value.device)
    turned = _orthonormal(noise - noise.mean(dim=1, keepdim=True))
    found: Tensor = mean + turned @ (right * (squares.clamp_min(0).sqrt()[:, None] * largest.sign())).mT
    return found


def _orthonormal(noise: Tensor) -> Tensor:
    """Gram and Schmidt, twice against rounding error, by Cholesky factors: noise is far from being dependent."""
    for _ in range(2):
        factor: Tensor = torch.linalg.cholesky(noise.mT @ noise, upper=True)
        noise = torch.linalg.solve_triangular(factor, noise, upper=True, left=False)
    return noise


ROTATED = Reference(
    "rotated", "the head's values, turned at random in token space", Role.NULL, values, uses_prediction=False
)
