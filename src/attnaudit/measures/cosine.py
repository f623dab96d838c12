"""Cosines between rows (tokens) of the values and of the prediction: the study's MDC and MOC.

These are what Tables 1 and 4 report. They depend on the arbitrary signs of eigenvectors, and the matched ones ignore
which token is which, so a high or low number says little by itself: read them beside their references.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import PerToken
from attnaudit.measures.assignment import matched
from attnaudit.measures.epsilons import Epsilons
from attnaudit.measures.guards import PREDICTED
from attnaudit.measures.measure import Cost, Measure
from attnaudit.measures.measure_input import MeasureInput, PredictedValues
from attnaudit.numerics.products import product

Rows = Float[Tensor, "heads tokens dim"]


def unit_rows(matrix: Rows, epsilons: Epsilons) -> Rows:
    """Each row over its length (plus epsilon)."""
    if epsilons.norm == 0.0:  # the square of a row of 1e-200 would be lost
        matrix = matrix / matrix.abs().amax(dim=-1, keepdim=True)
    lengths: Tensor = torch.linalg.vector_norm(matrix, dim=-1, keepdim=True)
    return matrix / (lengths + epsilons.norm)


def _unit_pair(at: MeasureInput) -> tuple[Rows, Rows]:
    return unit_rows(at.values_as_predicted.value, at.epsilons), at.predicted.shared(_predicted_rows)


def _predicted_rows(predicted: PredictedValues) -> Rows:
    return unit_rows(predicted.prediction.values, predicted.epsilons)


def direct_cosines(at: MeasureInput) -> PerToken:
    """v_i·w_i / (‖v_i‖‖w_i‖) of every token."""
    value, predicted = at.shared(_unit_pair)
    return (value * predicted).sum(dim=-1)


def matched_cosines(at: MeasureInput) -> PerToken:
    """v_i·w_j / (‖v_i‖‖w_j‖) of the pairs of tokens that the best assignment makes."""
    value, predicted = at.shared(_unit_pair)
    return matched(product(value, predicted.mT))


DIRECT_COSINE_MEAN = Measure(
    "direct_cosine_mean",
    "cosine of each token's value and predicted value, mean",
    lambda at: at.shared(direct_cosines).mean(dim=-1),
    closer="higher",
    ideal=1.0,
    guard=PREDICTED,
    every_theory=False,
    every_reference=False,
)
DIRECT_COSINE_MAX = Measure(
    "direct_cosine_max",
    "cosine of each token's value and predicted value, best token",
    lambda at: at.shared(direct_cosines).amax(dim=-1),
    closer="higher",
    ideal=1.0,
    guard=PREDICTED,
    every_theory=False,
    every_reference=False,
)
MATCHED_COSINE_MEAN = Measure(
    "matched_cosine_mean",
    "cosine after the best assignment of tokens, mean",
    lambda at: at.shared(matched_cosines).mean(dim=-1),
    closer="higher",
    ideal=1.0,
    guard=PREDICTED,
    cost=Cost.MATCHING,
    every_theory=False,
    every_reference=False,
    every_input=False,
)
MATCHED_COSINE_MAX = Measure(
    "matched_cosine_max",
    "cosine after the best assignment of tokens, best pair",
    lambda at: at.shared(matched_cosines).amax(dim=-1),
    closer="higher",
    ideal=1.0,
    guard=PREDICTED,
    cost=Cost.MATCHING,
    every_theory=False,
    every_reference=False,
    every_input=False,
)
