"""The projection of a layer's inputs that comes closest to what a theory predicts.

A head has values [X 1]W with one W for all inputs, so few of them can satisfy a theory that predicts a subspace for
every input. With the predicted span of input i as projector P_i, A_i = X_iᵀX_i and B_i = X_iᵀP_iX_i, the overlap is

    o_i(W) = tr((WᵀA_iW)⁻¹ WᵀB_iW) / d.

`leading_projections` maximises the ratio of the sums, tr((WᵀAW)⁻¹WᵀBW) with A = ΣA_i and B = ΣB_i: the leading
generalised eigenvectors (Fukunaga 1990, chapter 10). `refined_projections` goes on to a maximum of the mean of o_i over
its own inputs (`kernel.grassmann`): since it fits these inputs, it is an upper end of what any W reaches, while a W
measured on other inputs is a lower one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.grassmann import ascend
from attnaudit.kernel.solvers import eigenpairs, orthonormal_basis
from attnaudit.kernel.spans import Span
from attnaudit.numerics.products import product

Weights = Float[Tensor, "heads width dim"]
Inputs = Float[Tensor, "inputs tokens width"]
Bases = Float[Tensor, "inputs heads tokens dim"]

#: Directions of the inputs with less than this share of the largest variance are rounding error.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class ProjectionSums:
    """ΣA_i and ΣB_i over inputs: all that `leading_projections` needs, whatever their number."""

    inputs: Float[Tensor, "width width"]
    predicted: Float[Tensor, "heads width width"]
    count: int = 0

    @staticmethod
    def of(inputs: Inputs, bases: Bases) -> ProjectionSums:
        """Of some inputs, with a constant column, and orthonormal bases of the spans predicted for every head."""
        products = product(bases.mT, inputs[:, None])
        predicted = torch.einsum("ihdp,ihdq->hpq", products, products)
        return ProjectionSums(torch.einsum("inp,inq->pq", inputs, inputs), predicted, len(inputs))

    def __add__(self, other: ProjectionSums) -> ProjectionSums:
        return ProjectionSums(self.inputs + other.inputs, self.predicted + other.predicted, self.count + other.count)


def with_constant(source: Float[Tensor, "inputs tokens width"]) -> Float[Tensor, "inputs tokens more"]:
    """[X 1] in float64: a bias is a projection too."""
    wide = source.double()
    return torch.cat([wide, torch.ones_like(wide[..., :1])], dim=-1)


def _whitening(inputs: Float[Tensor, "*groups width width"]) -> tuple[Tensor, Tensor]:
    """M with MᵀAM = 1 on the directions that the inputs have, 0 on others, and its pseudo-inverse."""
    sizes, directions = _eigenpairs(inputs)
    kept = sizes > _NEGLIGIBLE * sizes[..., -1:]
    white = directions * sizes.rsqrt().where(kept, 0.0)[..., None, :]
    return white, (directions * sizes.sqrt().where(kept, 0.0)[..., None, :]).mT


def _eigenpairs(matrix: Float[Tensor, "*groups width width"]) -> tuple[Tensor, Tensor]:
    sizes, directions = eigenpairs(matrix.flatten(0, -3) if matrix.ndim > 2 else matrix[None])
    return sizes.view(matrix.shape[:-1]), directions.view(matrix.shape)


def leading_projections(sums: Sequence[ProjectionSums], dim: int) -> list[Weights]:
    """For each of them the W of `dim` columns with the largest tr((WᵀAW)⁻¹WᵀBW), normalised to WᵀAW = 1.

    All sums have the same shapes: many small problems at once keep a GPU busy.
    """
    white, _ = _whitening(torch.stack([own.inputs for own in sums]))
    predicted = torch.stack([own.predicted for own in sums])
    _, vectors = _eigenpairs(white[:, None].mT @ predicted @ white[:, None])
    weights = white[:, None] @ vectors[..., -dim:]
    ranks = (white != 0).any(dim=1).sum(dim=-1).tolist()  # of few tokens, fewer than `dim`
    return [own[..., -min(dim, rank) :] for own, rank in zip(weights, ranks, strict=True)]


def overlaps(weights: Weights, inputs: Inputs, bases: Bases) -> Float[Tensor, "inputs heads"]:
    """o_i(W) of every input and head."""
    span = Span.of(product(inputs[:, None], weights).flatten(0, 1))
    cosines = span.coordinates(bases.flatten(0, 1))
    return cosines.square().sum(dim=(-2, -1)).view(bases.shape[:2]) / bases.shape[-1]


def refined_projections(
    start: Float[Tensor, "groups heads width dim"],
    inputs: Float[Tensor, "groups inputs tokens width"],
    bases: Float[Tensor, "groups inputs heads tokens dim"],
    *,
    steps: int = 60,
    tolerance: float = 1e-5,
) -> Float[Tensor, "groups heads width dim"]:
    """From `start` to a local maximum of the mean overlap over the inputs of each group, all heads at once.

    Args:
        start: such as the leading projections of the same inputs.
        inputs: with a constant column.
        bases: orthonormal bases of the predicted spans.
        steps: at most this number of conjugate gradient steps.
        tolerance: stop when a step gains less than this.
    """
    products = torch.einsum("ginp,ginq->gpq", inputs, inputs)
    white, inverse = _whitening(products)
    whitened, begin = inputs @ white[:, None], inverse[:, None] @ start
    point = orthonormal_basis(begin.flatten(0, 1)).view(begin.shape)
    found = ascend(point, whitened.mT @ whitened, bases.mT @ whitened[:, :, None], steps, tolerance)
    return white[:, None] @ found
