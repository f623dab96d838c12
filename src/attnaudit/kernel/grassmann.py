"""The mean overlap of projected inputs with predicted spans, and its ascent on the Grassmann manifold, batched.

The overlap of `kernel.best_projection` is the same for W and WM, so what is sought is a subspace: a point with WᵀW = 1,
moved along geodesics by conjugate gradients (Edelman, Arias & Smith 1998). All heads of several groups are moved at
once, each by its own steps; the heads of a group have the same inputs.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit.kernel.solvers import eigenpairs

Points = Float[Tensor, "groups heads width dim"]
PerPoint = Float[Tensor, "groups heads"]
#: A_i = X_iᵀX_i of every input.
Squares = Float[Tensor, "groups inputs width width"]
#: C_i for which B_i = C_iᵀC_i = X_iᵀP_iX_i.
Predicted = Float[Tensor, "groups inputs heads dim width"]

#: A step that turns by less than this angle is none.
_SHORTEST = 1e-9


def ascend(point: Points, squares: Squares, predicted: Predicted, steps: int, tolerance: float) -> Points:
    """Conjugate gradients (Polak & Ribière) along geodesics, each step halved until it gains.

    A head stops after `steps`, when a step gains less than `tolerance`, or when none gains.
    """
    value, gradient = _value_and_gradient(point, squares, predicted)
    direction, length = gradient, torch.ones_like(value)
    moving = torch.ones_like(value, dtype=torch.bool)
    for _ in range(steps):
        direction = _chosen(_inner(gradient, direction) <= 0, gradient, direction)
        geodesic = _Geodesic(point, direction)
        length = 2 * length
        moved = geodesic.at(length)
        found, following = _value_and_gradient(moved, squares, predicted)
        while (short := moving & (found <= value)).any():
            length = torch.where(short, length / 2, length)
            moving = moving & ~(short & (length * geodesic.turn < _SHORTEST))
            some = short.any(dim=1).nonzero().flatten()  # the others have their step
            moved[some] = geodesic.at(length)[some]
            found[some], following[some] = _value_and_gradient(moved[some], squares[some], predicted[some])
        # Both are carried to the new point, to first order, by projection on its tangent space.
        carried, previous = (x - moved @ (moved.mT @ x) for x in (direction, gradient))
        weight = (_inner(following - previous, following) / _inner(gradient, gradient)).clamp_min(0)
        direction = following + weight[..., None, None] * carried
        point, gradient = _chosen(moving, moved, point), _chosen(moving, following, gradient)
        moving = moving & (found - value >= tolerance)
        value = torch.where(moving, found, value)
        if not moving.any():
            break
    return point


class _Geodesic:
    """From a point in a direction H = UΣRᵀ: W R cos(Σt) Rᵀ + U sin(Σt) Rᵀ, with HR/Σ for U."""

    def __init__(self, point: Points, direction: Points) -> None:
        squares, right = eigenpairs((direction.mT @ direction).flatten(0, 1))
        self._sizes = squares.clamp_min(0).sqrt().view(*point.shape[:2], -1)
        self._right = right.view(*point.shape[:2], *right.shape[1:])
        self._turned, self._turning = point @ self._right, direction @ self._right

    @property
    def turn(self) -> PerPoint:
        """The largest angle of a step of length 1."""
        return self._sizes[..., -1]

    def at(self, length: PerPoint) -> Points:
        """The point at a distance."""
        angles = self._sizes * length[..., None]
        # sin(Σt)/Σ = t·sinc(Σt/π)
        sines = length[..., None] * torch.sinc(angles / torch.pi)
        found: Tensor = (self._turned * torch.cos(angles)[..., None, :] + self._turning * sines[..., None, :]) @ (
            self._right.mT
        )
        return found


def _value_and_gradient(point: Points, squares: Squares, predicted: Predicted) -> tuple[PerPoint, Points]:
    """The mean overlap and its gradient in the tangent space.

    With M = WᵀA_iW and N = WᵀB_iW, o_i = tr(M⁻¹N)/d has the gradient 2(B_iW - A_iWM⁻¹N)M⁻¹/d.
    """
    groups, heads, width, count = point.shape
    # All heads of a group in one product, their columns beside each other.
    beside = point.transpose(1, 2).reshape(groups, 1, width, heads * count)
    image = (squares @ beside).view(groups, -1, width, heads, count).transpose(2, 3)
    cosines = predicted @ point[:, None]
    inner = point[:, None].mT @ image
    rounding = torch.finfo(inner.dtype).eps * inner.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    factor: Tensor = torch.linalg.cholesky(inner + rounding[..., None, None] * torch.eye(count).to(inner))
    inverse = torch.cholesky_solve(torch.eye(count).to(inner).expand_as(inner), factor)
    ratio = inverse @ (cosines.mT @ cosines)
    gradient = 2 * ((predicted.mT @ cosines - image @ ratio) @ inverse).mean(dim=1) / count
    value = ratio.diagonal(dim1=-2, dim2=-1).sum(dim=-1).mean(dim=1) / count
    return value, gradient - point @ (point.mT @ gradient)


def _inner(left: Points, right: Points) -> PerPoint:
    return (left * right).sum(dim=(-2, -1))


def _chosen(where: Bool[Tensor, "groups heads"], this: Points, that: Points) -> Points:
    return torch.where(where[..., None, None], this, that)
