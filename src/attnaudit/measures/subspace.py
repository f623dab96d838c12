"""Comparison of spans: does the space of the values contain what the theory says, whatever the basis?"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.solvers import orthonormal_basis, singular_values

Columns = Float[Tensor, "heads tokens columns"]


def span_measures(heads: Heads, predicted_basis: Columns) -> dict[str, Float[Tensor, "heads"]]:
    """`value_subspace_overlap` and `principal_angle_median` of span V and span V̇ (given by an orthonormal basis).

    With orthonormal bases Q and the singular values σ_m = cos θ_m of Q_VᵀQ_V̇, the overlap is Σσ²/d: 1 for equal spans
    and about d/N for random ones. θ is in degrees.
    """
    cosines = principal_cosines(orthonormal(heads.value.double()), predicted_basis)
    angles = torch.rad2deg(torch.arccos(cosines.clamp(0, 1)))
    return {
        "value_subspace_overlap": cosines.square().mean(dim=-1),
        "principal_angle_median": angles.median(dim=-1).values,
    }


def principal_cosines(x: Columns, y: Float[Tensor, "heads tokens others"]) -> Float[Tensor, "heads angles"]:
    """Cosines of the principal angles of two spaces given by orthonormal bases; NaN where either is not finite."""
    return singular_values(x.mT @ y)


def orthonormal(x: Columns) -> Float[Tensor, "heads tokens rank"]:
    """An orthonormal basis of the columns, each brought to unit length first so that their sizes do not matter."""
    lengths: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    return orthonormal_basis(x / lengths)
