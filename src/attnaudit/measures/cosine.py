"""Cosines between rows (tokens) of the values and of the prediction: the study's MDC and MOC.

These are what Tables 1 and 4 report. They depend on the arbitrary signs of eigenvectors, and the matched ones ignore
which token is which, so a high or low number says little by itself; they are carried to be put beside their references.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.measures.assignment import matched
from attnaudit.measures.guards import EXACT, Guards
from attnaudit.measures.pairs import too_many_pairs


def token_cosines(heads: Heads, prediction: Prediction, guards: Guards = EXACT) -> dict[str, Float[Tensor, "heads"]]:
    """c_ij = v_i·w_j / (‖v_i‖‖w_j‖) over tokens; `direct` takes i = j, `matched` the best assignment of tokens."""
    value, predicted = heads.value.to(prediction.values.dtype), prediction.values
    left, right = unit_rows(value, guards), unit_rows(predicted, guards)
    direct = (left * right).sum(dim=-1)
    best = torch.full_like(direct, torch.nan) if too_many_pairs(value) else matched(left @ right.mT)
    return {
        "direct_cosine_mean": direct.mean(dim=-1),
        "direct_cosine_max": direct.amax(dim=-1),
        "matched_cosine_mean": best.mean(dim=-1),
        "matched_cosine_max": best.amax(dim=-1),
    }


def unit_rows(matrix: Float[Tensor, "heads n dim"], guards: Guards) -> Float[Tensor, "heads n dim"]:
    """Each row over its length (plus the guard)."""
    if guards.norm == 0.0:  # the square of a row of 1e-200 would be lost
        matrix = matrix / matrix.abs().amax(dim=-1, keepdim=True)
    lengths: Tensor = torch.linalg.vector_norm(matrix, dim=-1, keepdim=True)
    return matrix / (lengths + guards.norm)
