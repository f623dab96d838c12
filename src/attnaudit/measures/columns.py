"""Comparison of columns: what a theory that leaves sign and order of its components free can be held to."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import PerHead
from attnaudit.kernel.solvers import singular_values
from attnaudit.measures.assignment import assigned, matched
from attnaudit.measures.guards import PREDICTED
from attnaudit.measures.measure import Cost, Measure
from attnaudit.measures.measure_input import MeasureInput, OwnValues, PredictedValues
from attnaudit.numerics.products import product

Columns = Float[Tensor, "heads tokens dim"]


@dataclass(frozen=True)
class ColumnProducts:
    """V̇ᵀV and the lengths of the columns of V̇ and V, both matrices scaled to ‖·‖_F = 1."""

    product: Float[Tensor, "heads components dim"]
    predicted_lengths: Float[Tensor, "heads components"]
    value_lengths: Float[Tensor, "heads dim"]


def column_products(at: MeasureInput) -> ColumnProducts:
    """Of the values and the predicted values of every head."""
    (value, value_lengths), (predicted, lengths) = at.values.shared(_values), at.predicted.shared(_predicted)
    return ColumnProducts(product(predicted.mT, value), lengths, value_lengths)


#: A matrix scaled to ‖·‖_F = 1, and the lengths of its columns.
_Scaled = tuple[Columns, Float[Tensor, "heads dim"]]


def _values(values: OwnValues) -> _Scaled:
    return _of_unit_size(values.value)


def _predicted(predicted: PredictedValues) -> _Scaled:
    return _of_unit_size(predicted.prediction.values.double())


def _of_unit_size(matrix: Columns) -> _Scaled:
    sizes: Tensor = torch.linalg.matrix_norm(matrix, keepdim=True)
    scaled = matrix / sizes
    return scaled, scaled.square().sum(dim=1).sqrt()


def column_cosine_matched(at: MeasureInput) -> PerHead:
    """Mean |cos| of value columns and predicted columns under the best one-to-one assignment (d x d).

    Neither signs nor order matter.
    """
    return matched(at.shared(_cosines).abs()).mean(dim=-1)


def _cosines(at: MeasureInput) -> Float[Tensor, "heads components dim"]:
    columns = at.shared(column_products)
    sizes = columns.predicted_lengths[:, :, None] * columns.value_lengths[:, None, :]
    return columns.product / (sizes + at.epsilons.norm)


@dataclass(frozen=True)
class MatchedColumns:
    """The pairs behind `column_cosine_matched` of one head: |cosine|, and both columns, with the sign that fits."""

    cosines: Float[Tensor, "pairs"]
    values: Float[Tensor, "pairs tokens"]
    predicted: Float[Tensor, "pairs tokens"]


def matched_columns(at: MeasureInput, head: int) -> MatchedColumns:
    """Of one head of a batch, which must have a prediction."""
    cosines = at.shared(_cosines)[head]
    components, columns = map(torch.from_numpy, assigned(cosines.abs().double().numpy(force=True)))
    signed = cosines[components, columns]
    (value, _), (predicted, _) = at.values.shared(_values), at.predicted.shared(_predicted)
    flipped = predicted[head].mT[components] * torch.where(signed < 0, -1.0, 1.0)[:, None]
    return MatchedColumns(signed.abs(), value[head].mT[columns], flipped)


def procrustes(at: MeasureInput) -> PerHead:
    """‖V̇ᵀV‖_* / (‖V̇‖_F ‖V‖_F), the similarity after the best rotation.

    A rotation is more than the theory allows: a low value is the stronger refutation.
    """
    return singular_values(at.shared(column_products).product).sum(dim=-1)


COLUMN_COSINE_MATCHED = Measure(
    "column_cosine_matched",
    "mean |cosine| of columns of V and V̇ in the best assignment",
    column_cosine_matched,
    closer="higher",
    ideal=1.0,
    guard=PREDICTED,
    cost=Cost.ASSIGNMENT,
)
PROCRUSTES = Measure(
    "procrustes",
    "similarity of V and V̇ after the best rotation",
    procrustes,
    closer="higher",
    ideal=1.0,
    guard=PREDICTED,
)
