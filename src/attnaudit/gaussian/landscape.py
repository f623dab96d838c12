"""Critical points of a risk, of rank one, with the signatures of their Hessians."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.errors import NumericalError
from attnaudit.gaussian.checks import check_covariance
from attnaudit.gaussian.covariance import principal_axes
from attnaudit.gaussian.risk import Covariance, Risk

#: Eigenvalues that differ by less than this share of the largest count as equal; such curvatures count as zero.
_SAME = 1e-9


@dataclass(frozen=True)
class CriticalPoint:
    """A point at which the gradient vanishes.

    `axis` is the number of the eigenvalue, from 1 for the largest, and 0 for the origin. With a `multiplicity` m > 1
    the point represents a sphere of dimension m - 1. `signature` counts negative, zero and positive curvatures.
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
        """Minimum, saddle or maximum; for a sphere, in the directions across it."""
        negative, _, positive = self.signature
        if not negative:
            return "minimum"
        return "saddle" if positive else "maximum"


def critical_points(risk: Risk, covariance: Covariance) -> list[CriticalPoint]:
    """All critical points, up to sign: 0, then √(s/λ)v for each eigenvalue λ from large to small, s = μᵀΣμ.

    For every Σ (Maulen-Soto & Boyer 2026 for infinite prompts and in context; derived here for every length). Where
    they list 2(d - 1) isolated points orthogonal to the spike, the set is a sphere: each point has d - 2 flat
    directions.
    """
    check_covariance(covariance)
    if not risk.critical_only_on_axes:
        raise NumericalError("This risk may have critical points off the eigenvectors, which cannot be listed.")
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
