"""Where a risk is flat: critical points of rank one with their Hessian signatures."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.errors import NumericalError
from attnaudit.gaussian.checks import check_covariance
from attnaudit.gaussian.covariance import principal_axes
from attnaudit.gaussian.risk import Covariance, Risk

#: Eigenvalues closer than this share of the largest are one eigenvalue; curvatures likewise are zero.
_SAME = 1e-9


@dataclass(frozen=True)
class CriticalPoint:
    """A point where the gradient vanishes.

    `axis` numbers the eigenvalue, from 1 for the largest, 0 for the origin; `multiplicity` m > 1 means that the point
    stands for a sphere of dimension m - 1. `signature` counts negative, zero and positive curvatures.
    """

    axis: int
    eigenvalue: float
    multiplicity: int
    point: Float[Tensor, "dim"]
    size: float
    risk: float
    curvatures: Float[Tensor, "dim"]
    signature: tuple[int, int, int]

    @property
    def kind(self) -> str:
        """In words; for a sphere, across it."""
        negative, _, positive = self.signature
        if not negative:
            return "minimum"
        return "saddle" if positive else "maximum"


def critical_points(risk: Risk, covariance: Covariance) -> list[CriticalPoint]:
    """All of them, up to sign: 0, then √(s/λ)v for each eigenvalue λ from large to small, s = μᵀΣμ.

    For every Σ (Maulen-Soto & Boyer 2026 for infinite prompts and in context; every length derived here). Where they
    list 2(d - 1) isolated points orthogonal to the spike, the set is a sphere: each has d - 2 flat directions.
    """
    check_covariance(covariance)
    if not risk.critical_only_on_axes:
        raise NumericalError("This risk may have critical points off the axes, which cannot be listed.")
    eigenvalues, vectors = principal_axes(covariance)
    trace = float(eigenvalues.sum())
    points = [_point(risk, covariance, 0, 0.0, len(eigenvalues), torch.zeros_like(vectors[:, 0]), 0.0)]
    gap = _SAME * float(eigenvalues[0])
    place, axis = 0, 1
    while place < len(eigenvalues):
        value = float(eigenvalues[place])
        multiplicity = int((eigenvalues[place:] > value - gap).sum())
        size = risk.optimal_size(value, trace)
        point = vectors[:, place] * (size / value) ** 0.5
        points.append(_point(risk, covariance, axis, value, multiplicity, point, size))
        place, axis = place + multiplicity, axis + 1
    return points


def _point(
    risk: Risk,
    covariance: Covariance,
    axis: int,
    eigenvalue: float,
    multiplicity: int,
    point: Float[Tensor, "dim"],
    size: float,
) -> CriticalPoint:
    curvatures = torch.linalg.eigvalsh(risk.hessian(point, covariance))
    zero = _SAME * float(curvatures.abs().max())
    signs = (curvatures < -zero, curvatures.abs() <= zero, curvatures > zero)
    negative, flat, positive = (int(sign.sum()) for sign in signs)
    value = float(risk(point[:, None], covariance))
    return CriticalPoint(axis, eigenvalue, multiplicity, point, size, value, curvatures, (negative, flat, positive))
