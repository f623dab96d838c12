"""Optimal one-to-one matching of rows and columns."""

from __future__ import annotations

import torch
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment
from torch import Tensor


def matched(scores: Float[Tensor, "heads n n"]) -> Float[Tensor, "heads n"]:
    """The entries of each matrix that the assignment with the largest sum picks; NaN for matrices that hold one."""
    picked = scores.new_full(scores.shape[:2], torch.nan)
    usable = scores.isfinite().all(dim=-1).all(dim=-1)
    for place in usable.nonzero().flatten().tolist():
        matrix = scores[place].numpy(force=True)
        rows, columns = linear_sum_assignment(matrix, maximize=True)
        picked[place] = scores.new_tensor(matrix[rows, columns])
    return picked
