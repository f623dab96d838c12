"""Comparison of columns: what a theory that leaves sign and order of its components free can be held to."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.solvers import singular_values
from attnaudit.measures.assignment import matched
from attnaudit.measures.guards import EXACT, Guards


def column_measures(heads: Heads, prediction: Prediction, guards: Guards = EXACT) -> dict[str, Float[Tensor, "heads"]]:
    """`column_cosine_matched` and `procrustes`.

    The first is the mean |cos| of value columns and predicted columns under the best one-to-one assignment (d x d), so
    neither signs nor order matter. The second is ‖V̇ᵀV‖_* / (‖V̇‖_F ‖V‖_F), the similarity after the best rotation,
    which allows more than the theory does: a low value is the stronger refutation.
    """
    value, predicted = heads.value.double(), prediction.values.double()
    value, predicted = _of_unit_size(value), _of_unit_size(predicted)
    product = predicted.mT @ value
    sizes = torch.linalg.vector_norm(predicted, dim=1)[:, :, None] * torch.linalg.vector_norm(value, dim=1)[:, None, :]
    nuclear = singular_values(product).sum(dim=-1)
    return {
        "column_cosine_matched": matched((product / (sizes + guards.norm)).abs()).mean(dim=-1),
        "procrustes": nuclear,
    }


def _of_unit_size(matrix: Float[Tensor, "heads tokens dim"]) -> Float[Tensor, "heads tokens dim"]:
    sizes: Tensor = torch.linalg.matrix_norm(matrix, keepdim=True)
    return matrix / sizes
