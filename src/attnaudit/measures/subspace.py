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
from attnaudit.kernel.spans import Span
from attnaudit.measures.guards import PREDICTED
from attnaudit.measures.measure import Measure
from attnaudit.measures.measure_input import MeasureInput, OwnValues, PredictedValues

Columns = Float[Tensor, "heads tokens columns"]


def of_unit_length(x: Columns) -> Columns:
    """Each column over its length, so that their sizes do not matter."""
    return x / x.square().sum(dim=1, keepdim=True).sqrt()


def orthonormal(x: Columns) -> Float[Tensor, "heads tokens rank"]:
    """An orthonormal basis of the columns, each brought to unit length first."""
    return orthonormal_basis(of_unit_length(x))


def basis_products(at: MeasureInput) -> Float[Tensor, "heads columns components"]:
    """Q_VᵀQ_V̇, whose singular values are the cosines of the principal angles; NaN where either is not finite."""
    return at.values.shared(value_span).coordinates(at.predicted.shared(predicted_basis))


def value_span(values: OwnValues) -> Span:
    """That of the columns at unit length."""
    return Span.of(of_unit_length(values.value))


def predicted_basis(predicted: PredictedValues) -> Columns:
    """An orthonormal basis of the span that a theory predicts."""
    return orthonormal(predicted.prediction.values.double())


def value_subspace_overlap(at: MeasureInput) -> PerHead:
    """Σσ²/d = ‖Q_VᵀQ_V̇‖²_F/d."""
    products = at.shared(basis_products)
    return products.square().sum(dim=(1, 2)) / min(products.shape[1:])


def principal_angle_median(at: MeasureInput) -> PerHead:
    """The lower median of θ."""
    cosines = singular_values(at.shared(basis_products))
    return torch.rad2deg(torch.arccos(cosines.clamp(0, 1))).median(dim=-1).values


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
    every_reference=False,
)
