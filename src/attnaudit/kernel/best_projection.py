"""The projection of a layer's inputs that comes closest to what a theory predicts.

A head has values [X 1]W with one W for all inputs, so few of them can satisfy a theory that predicts a subspace for
every input. With the predicted span of input i as projector P_i, A_i = X_iᵀX_i and B_i = X_iᵀP_iX_i, the overlap is

    o_i(W) = tr((WᵀA_iW)⁻¹ WᵀB_iW) / d.

`leading_projection` maximises the ratio of the sums, tr((WᵀAW)⁻¹WᵀBW) with A = ΣA_i and B = ΣB_i: the leading
generalised eigenvectors (Fukunaga 1990, chapter 10). `refined_projection` goes on to a maximum of the mean of o_i over
its own inputs, by conjugate gradients on the Grassmann manifold (Edelman, Arias & Smith 1998): since it fits these
inputs, it is an upper end of what any W reaches, while a W measured on other inputs is a lower one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.numerics.threads import torch_threads

Weights = Float[Tensor, "heads width dim"]
Inputs = Float[Tensor, "inputs tokens width"]
Bases = Float[Tensor, "inputs heads tokens dim"]

#: Directions of the inputs with less than this share of the largest variance are rounding error.
_NEGLIGIBLE = 1e-12
#: A step that turns by less than this angle is none.
_SHORTEST = 1e-9


@dataclass(frozen=True)
class ProjectionSums:
    """ΣA_i and ΣB_i over inputs: all that `leading_projection` needs, whatever their number."""

    inputs: Float[Tensor, "width width"]
    predicted: Float[Tensor, "heads width width"]
    count: int = 0

    @staticmethod
    def of(inputs: Inputs, bases: Bases) -> ProjectionSums:
        """Of some inputs, with a constant column, and orthonormal bases of the spans predicted for every head."""
        products = bases.mT @ inputs[:, None]
        predicted = torch.einsum("ihdp,ihdq->hpq", products, products)
        return ProjectionSums(torch.einsum("inp,inq->pq", inputs, inputs), predicted, len(inputs))

    def __add__(self, other: ProjectionSums) -> ProjectionSums:
        return ProjectionSums(self.inputs + other.inputs, self.predicted + other.predicted, self.count + other.count)


def with_constant(source: Float[Tensor, "inputs tokens width"]) -> Float[Tensor, "inputs tokens more"]:
    """[X 1] in float64: a bias is a projection too."""
    wide = source.double()
    return torch.cat([wide, torch.ones_like(wide[..., :1])], dim=-1)


def whitening(inputs: Float[Tensor, "width width"]) -> Float[Tensor, "width rank"]:
    """M with MᵀAM = 1 on the directions that the inputs have."""
    with torch_threads(1):
        sizes, directions = torch.linalg.eigh(inputs)
    kept = sizes > _NEGLIGIBLE * sizes[-1]
    white: Tensor = directions[:, kept] * sizes[kept].rsqrt()
    return white


def leading_projection(sums: ProjectionSums, dim: int) -> Weights:
    """The W of `dim` columns with the largest tr((WᵀAW)⁻¹WᵀBW), normalised to WᵀAW = 1."""
    white = whitening(sums.inputs)
    with torch_threads(1):
        _, vectors = torch.linalg.eigh(white.mT @ sums.predicted @ white)
    weights: Tensor = white @ vectors[..., -dim:]
    return weights


def overlaps(weights: Weights, inputs: Inputs, bases: Bases) -> Float[Tensor, "inputs heads"]:
    """o_i(W) of every input and head."""
    basis: Tensor = torch.linalg.qr(inputs[:, None] @ weights)[0]
    return (basis.mT @ bases).square().sum(dim=(-2, -1)) / bases.shape[-1]


def refined_projection(
    start: Weights, inputs: Inputs, bases: Bases, *, steps: int = 60, tolerance: float = 1e-5
) -> Weights:
    """From `start` to a local maximum of the mean overlap over these inputs, one head at a time.

    Args:
        start: such as the leading projection of the same inputs.
        inputs: with a constant column.
        bases: orthonormal bases of the predicted spans.
        steps: at most this number of conjugate gradient steps.
        tolerance: stop when a step gains less than this.
    """
    with torch_threads(1):
        white = whitening(torch.einsum("inp,inq->pq", inputs, inputs))
        whitened, begin = inputs @ white, torch.linalg.pinv(white) @ start
        squares = whitened.mT @ whitened
        return torch.stack(
            [
                white @ _ascend(torch.linalg.qr(own)[0], squares, bases[:, head].mT @ whitened, steps, tolerance)
                for head, own in enumerate(begin)
            ]
        )


def _ascend(point: Tensor, squares: Tensor, predicted: Tensor, steps: int, tolerance: float) -> Tensor:
    """Conjugate gradients (Polak & Ribière) along geodesics, each step halved until it gains."""
    value, gradient = _value_and_gradient(point, squares, predicted)
    direction, length = gradient, 1.0
    for _ in range(steps):
        if (gradient * direction).sum() <= 0:
            direction = gradient
        left, sizes, right = torch.linalg.svd(direction, full_matrices=False)
        length = 2 * length
        moved = _along(point, left, sizes, right, length)
        found, following = _value_and_gradient(moved, squares, predicted)
        while found <= value:
            length /= 2
            if length * float(sizes[0]) < _SHORTEST:
                return point
            moved = _along(point, left, sizes, right, length)
            found, following = _value_and_gradient(moved, squares, predicted)
        # Both are carried to the new point, to first order, by projection on its tangent space.
        carried, previous = (x - moved @ (moved.mT @ x) for x in (direction, gradient))
        weight = ((following - previous) * following).sum() / (gradient * gradient).sum()
        gain, direction = float(found - value), following + weight.clamp_min(0) * carried
        point, value, gradient = moved, found, following
        if gain < tolerance:
            return point
    return point


def _along(point: Tensor, left: Tensor, sizes: Tensor, right: Tensor, length: float) -> Tensor:
    """The geodesic from a point: W Rᵀ cos(Σt) R + U sin(Σt) R."""
    return (point @ right.mT * torch.cos(sizes * length) + left * torch.sin(sizes * length)) @ right


def _value_and_gradient(
    point: Float[Tensor, "width dim"],
    squares: Float[Tensor, "inputs width width"],
    predicted: Float[Tensor, "inputs dim width"],
) -> tuple[Tensor, Tensor]:
    """The mean overlap and its gradient in the tangent space.

    With A_i, and C_i for which B_i = C_iᵀC_i, M = WᵀA_iW and N = WᵀB_iW: o_i = tr(M⁻¹N)/d has the gradient
    2(B_iW - A_iWM⁻¹N)M⁻¹/d. Products and Cholesky factors of all inputs at once are fast on any device.
    """
    count = point.shape[-1]
    image, cosines = squares @ point, predicted @ point
    inner = point.mT @ image
    rounding = torch.finfo(inner.dtype).eps * inner.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    factor: Tensor = torch.linalg.cholesky(inner + rounding[:, None, None] * torch.eye(count).to(inner))
    ratio = torch.cholesky_solve(cosines.mT @ cosines, factor)
    slope = predicted.mT @ cosines - image @ ratio
    gradient = 2 * torch.cholesky_solve(slope.mT, factor).mT.mean(dim=0) / count
    value = ratio.diagonal(dim1=-2, dim2=-1).sum(dim=-1).mean() / count
    return value, gradient - point @ (point.mT @ gradient)
