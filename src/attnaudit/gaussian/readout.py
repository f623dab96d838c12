"""Read out what a trained head has found: Σμ, not μ.

The risk does not depend on μ in the null space of Σ, and hardly in directions of little variance, so there μ keeps its
random initial values. Σμ, the direction of the head's output, weights this noise away.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

Weights = Float[Tensor, "*batch dim rank"]


def readout(weights: Weights, covariance: Float[Tensor, "dim dim"]) -> Weights:
    """ΣW: the directions of a head's output."""
    return covariance @ weights


def cosine(x: Float[Tensor, "*batch dim"], y: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """|cos| of the angle between two directions, whose signs are arbitrary."""
    return torch.nn.functional.cosine_similarity(x, y, dim=-1).abs()


def squared_sine(x: Float[Tensor, "*batch dim"], y: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """sin² of the angle, from the part of x orthogonal to y: accurate even where 1 - cos² is rounding error."""
    unit = y / y.norm(dim=-1, keepdim=True)
    rest = x - (x * unit).sum(dim=-1, keepdim=True) * unit
    share: Tensor = rest.square().sum(dim=-1) / x.square().sum(dim=-1)
    return share


def explained_variance_ratio(
    weights: Float[Tensor, "dim rank"], covariance: Float[Tensor, "dim dim"]
) -> Float[Tensor, ""]:
    """The share of the variance inside the span of ΣW."""
    basis, _ = torch.linalg.qr(readout(weights, covariance))
    return torch.trace(basis.mT @ covariance @ basis) / torch.trace(covariance)


def deflated(covariance: Float[Tensor, "dim dim"], direction: Float[Tensor, "dim"]) -> Float[Tensor, "dim dim"]:
    """PΣP, with one direction projected out: trained on it, the next head finds the next component."""
    unit = direction / direction.norm()
    projector = torch.eye(len(unit), dtype=unit.dtype, device=unit.device) - torch.outer(unit, unit)
    return projector @ covariance @ projector
