"""Comparison of columns: what a theory that leaves sign and order of its components free can be held to."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import PerHead
from attnaudit.kernel.solvers import singular_values
from attnaudit.measures.assignment import matched
from attnaudit.measures.guards import PREDICTED
from attnaudit.measures.measure import Cost, Measure
from attnaudit.measures.measure_input import MeasureInput

Columns = Float[Tensor, "heads tokens dim"]


@dataclass(frozen=True)
class ColumnProducts:
    """V̇ᵀV and the lengths of the columns of V̇ and V, both matrices scaled to ‖·‖_F = 1."""

    product: Float[Tensor, "heads components dim"]
    predicted_lengths: Float[Tensor, "heads components"]
    value_lengths: Float[Tensor, "heads dim"]


def column_products(at: MeasureInput) -> ColumnProducts:
    """Of the values and the predicted values of every head."""
    value, predicted = _of_unit_size(at.heads.value.double()), _of_unit_size(at.prediction.values.double())
    return ColumnProducts(
        predicted.mT @ value, torch.linalg.vector_norm(predicted, dim=1), torch.linalg.vector_norm(value, dim=1)
    )


def _of_unit_size(matrix: Columns) -> Columns:
    sizes: Tensor = torch.linalg.matrix_norm(matrix, keepdim=True)
    return matrix / sizes


def column_cosine_matched(at: MeasureInput) -> PerHead:
    """Mean |cos| of value columns and predicted columns under the best one-to-one assignment (d x d).

    Neither signs nor order matter.
    """
    columns = at.shared(column_products)
    sizes = columns.predicted_lengths[:, :, None] * columns.value_lengths[:, None, :]
    return matched((columns.product / (sizes + at.epsilons.norm)).abs()).mean(dim=-1)


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
