"""What a trained head has found: read Σμ, not μ.

The risk does not see the null space of Σ and hardly sees directions of little variance, so what μ holds there is left
over from the start. Σμ is the direction the head writes its output in, and has that noise weighted away.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

Weights = Float[Tensor, "*batch dim rank"]


def readout(weights: Weights, covariance: Float[Tensor, "dim dim"]) -> Weights:
    """ΣW: the directions a head writes in."""
    return covariance @ weights


def cosine(x: Float[Tensor, "*batch dim"], y: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """|cos| of the angle of two directions, which have no sign."""
    return torch.nn.functional.cosine_similarity(x, y, dim=-1).abs()


def squared_sine(x: Float[Tensor, "*batch dim"], y: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """sin² of the angle, from what is left of x without y: exact where 1 - cos² is only rounding."""
    unit = y / y.norm(dim=-1, keepdim=True)
    rest = x - (x * unit).sum(dim=-1, keepdim=True) * unit
    share: Tensor = rest.square().sum(dim=-1) / x.square().sum(dim=-1)
    return share


def explained_variance_ratio(
    weights: Float[Tensor, "dim rank"], covariance: Float[Tensor, "dim dim"]
) -> Float[Tensor, ""]:
    """Share of the variance inside the span of ΣW."""
    basis, _ = torch.linalg.qr(readout(weights, covariance))
    return torch.trace(basis.mT @ covariance @ basis) / torch.trace(covariance)


def deflated(covariance: Float[Tensor, "dim dim"], direction: Float[Tensor, "dim"]) -> Float[Tensor, "dim dim"]:
    """PΣP without a direction: trained on it, the next head finds the next component."""
    unit = direction / direction.norm()
    projector = torch.eye(len(unit), dtype=unit.dtype, device=unit.device) - torch.outer(unit, unit)
    return projector @ covariance @ projector
