"""Optimal one-to-one matching of rows and columns."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from attnaudit.kernel.gram import finite_heads
from attnaudit.measures import gpu_assignment
from attnaudit.measures.gpu_assignment import ROUNDS, SHARPNESS

#: With fewer rows, preparing a matrix for the exact solver takes longer than it saves.
_LARGE = 100


def matched(scores: Float[Tensor, "heads rows columns"]) -> Float[Tensor, "heads pairs"]:
    """The entries of each matrix in the assignment with the largest sum; NaN for a matrix that is not finite.

    A matrix that is not square has as many pairs as its shorter side.
    """
    scores = scores if scores.shape[1] <= scores.shape[2] else scores.mT
    picked = scores.new_full(scores.shape[:2], torch.nan)
    usable = finite_heads(scores)
    if gpu_assignment.available(scores) and usable.any():
        row_of = gpu_assignment.assigned_rows(-scores[usable])
        picked[usable] = scores[usable].gather(1, row_of[:, None, :])[:, 0]
        return picked
    places, matrices = usable.nonzero().flatten(), scores[usable].double().numpy(force=True)
    columns = np.empty(matrices.shape[:2], dtype=np.int64)
    for own, matrix in zip(columns, matrices, strict=True):
        own[:] = assigned(matrix)[1]  # row by row, as there are no more rows than columns
    picked[places] = scores[places].gather(2, torch.from_numpy(columns).to(places)[:, :, None])[:, :, 0]
    return picked


def assigned(matrix: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the assignment with the largest sum, in order of the rows."""
    from scipy.optimize import linear_sum_assignment  # a GPU does without it, and importing it takes a while

    rows, columns = linear_sum_assignment(_reduced(matrix), maximize=True)
    return rows, columns


def _reduced(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """A square matrix minus a number per row and per column, which does not change its best assignment.

    (In a matrix that is not square not every column is used, so there it would.)

    Good numbers are the potentials of the entropy-regularised problem, which a few Sinkhorn rounds approximate; SciPy's
    exact solver then finds most rows already decided and takes half the time.
    """
    if len(matrix) < _LARGE or matrix.shape[0] != matrix.shape[1]:
        return matrix
    spread = float(np.ptp(matrix))
    if spread == 0.0:
        return matrix
    softness = spread / SHARPNESS
    kernel = np.exp((matrix - matrix.max()) / softness)
    columns = np.ones(matrix.shape[1])
    for _ in range(ROUNDS):
        rows = 1 / (kernel @ columns)
        columns = 1 / (rows @ kernel)
    reduced: NDArray[np.float64] = matrix + softness * (np.log(rows)[:, None] + np.log(columns)[None, :])
    return reduced
