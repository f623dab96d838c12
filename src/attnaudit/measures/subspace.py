"""Comparison of spans: does the space of the values contain what the theory says, whatever the basis?

With orthonormal bases Q and the singular values σ_m = cos θ_m of Q_VᵀQ_V̇, the overlap is Σσ²/d: 1 for equal spans and
about d/N for random ones. θ is in degrees.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import PerHead
from attnaudit.kernel.solvers import orthonormal_basis, singular_values
from attnaudit.measures.guards import PREDICTED
from attnaudit.measures.measure import Measure
from attnaudit.measures.measure_input import MeasureInput, PredictedValues

Columns = Float[Tensor, "heads tokens columns"]


def orthonormal(x: Columns) -> Float[Tensor, "heads tokens rank"]:
    """An orthonormal basis of the columns, each brought to unit length first so that their sizes do not matter."""
    lengths: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return orthonormal_basis(x / lengths)


def principal_cosines(at: MeasureInput) -> Float[Tensor, "heads angles"]:
    """Cosines of the principal angles of span V and span V̇; NaN where either is not finite."""
    return singular_values(orthonormal(at.heads.value.double()).mT @ at.predicted.shared(_predicted_basis))


def _predicted_basis(predicted: PredictedValues) -> Columns:
    return orthonormal(predicted.prediction.values.double())


def value_subspace_overlap(at: MeasureInput) -> PerHead:
    """Σσ²/d."""
    return at.shared(principal_cosines).square().mean(dim=-1)


def principal_angle_median(at: MeasureInput) -> PerHead:
    """The lower median of θ."""
    angles = torch.rad2deg(torch.arccos(at.shared(principal_cosines).clamp(0, 1)))
    return angles.median(dim=-1).values


VALUE_SUBSPACE_OVERLAP = Measure(
    "value_subspace_overlap",
    "overlap of the spans of V and V̇",
    value_subspace_overlap,
    closer="higher",
    ideal=1.0,
    guard=PREDICTED,
    has_ceiling=True,
)
PRINCIPAL_ANGLE_MEDIAN = Measure(
    "principal_angle_median",
    "median principal angle between the spans of V and V̇, in degrees",
    principal_angle_median,
    closer="lower",
    ideal=0.0,
    guard=PREDICTED,
)
