"""The projection error of kernel PCA, exactly, with the best order and signs: one assignment problem, not d! trials.

With unit axes u_m the projection of a query is c_im = φ(q_i)ᵀu_m = Σ_j softmax_ij V̇_jm. The claim h_i ≈ c_i, up to
order π and signs s of the components, has the error

    J(π, s) = mean_i (‖φ(q_i)‖² + ‖h_i‖²) - (2/N) Σ_m s_m M_{m,π(m)},      M = HᵀC,

so the best π and s maximise Σ|M_{m,π(m)}|. Allowing any rotation gives the nuclear norm of M instead, and kernel PCA
itself attains mean_i (‖φ(q_i)‖² - ‖c_i‖²), the floor: floor ≤ rotated ≤ matched, always.

The size of J is a matter of units: V → sV, undone by the output projection, moves it at will, and ‖φ(q)‖² is nearly all
of it. So J describes. What J says whatever the size of H is how well H and C point the same way, the *alignment*,

    max_{π,s} Σ_m s_m M_{m,π(m)} / (‖H‖_F ‖C‖_F), or ‖M‖_* / (‖H‖_F ‖C‖_F) with the best rotation: 1 for kernel PCA.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import PerHead
from attnaudit.kernel.solvers import singular_values
from attnaudit.measures.assignment import matched
from attnaudit.measures.guards import EIGENPAIRS
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure import Cost, Measure, Scope
from attnaudit.measures.measure_input import MeasureInput
from attnaudit.numerics.products import product


@dataclass(frozen=True)
class Projection:
    """Mᵀ = CᵀH, whose assignment is found faster than that of M, mean_i (‖φ(q_i)‖² + ‖h_i‖²), and ‖H‖_F ‖C‖_F."""

    product: Float[Tensor, "heads components value_dim"]
    both: PerHead
    sizes: PerHead


def projected_queries(keys: KeyKernel) -> Float[Tensor, "heads queries components"]:
    """C, the projections of the queries on the unit axes."""
    axes = keys.unit_axes
    return keys.attended(axes.values.double() * torch.exp(axes.log_scale.double())[:, None, None])


def _projected_size(keys: KeyKernel) -> PerHead:
    """‖C‖_F."""
    size: Tensor = torch.linalg.matrix_norm(keys.shared(projected_queries))
    return size


def projection(at: MeasureInput) -> Projection:
    """What the error is made of."""
    output = at.heads.output.double()
    size2 = output.square().sum(dim=(1, 2))
    both = at.keys.phi.mean(dim=-1) + size2 / output.shape[1]
    return Projection(
        product(at.keys.shared(projected_queries).mT, output), both, size2.sqrt() * at.keys.shared(_projected_size)
    )


def projection_error_matched(at: MeasureInput) -> PerHead:
    """J with the best order and signs."""
    return at.shared(projection).both - 2 / at.heads.output.shape[1] * at.shared(_matched)


def projection_error_rotated(at: MeasureInput) -> PerHead:
    """J with the best rotation."""
    return at.shared(projection).both - 2 / at.heads.output.shape[1] * at.shared(_rotated)


def projection_alignment_matched(at: MeasureInput) -> PerHead:
    """Σ|M_{m,π(m)}| / (‖H‖_F ‖C‖_F) with the best order."""
    return at.shared(_matched) / at.shared(projection).sizes


def projection_alignment_rotated(at: MeasureInput) -> PerHead:
    """‖M‖_* / (‖H‖_F ‖C‖_F)."""
    return at.shared(_rotated) / at.shared(projection).sizes


def _matched(at: MeasureInput) -> PerHead:
    return matched(at.shared(projection).product.abs()).sum(dim=-1)


def _rotated(at: MeasureInput) -> PerHead:
    return singular_values(at.shared(projection).product).sum(dim=-1)


def projection_error_floor(at: MeasureInput) -> PerHead:
    """mean_i (‖φ(q_i)‖² - ‖c_i‖²)."""
    return (at.keys.phi - at.keys.shared(projected_queries).square().sum(dim=-1)).mean(dim=-1)


PROJECTION_ERROR_MATCHED = Measure(
    "projection_error_matched",
    "J_proj with the best order and signs",
    projection_error_matched,
    scope=Scope.VALUES,
    guard=EIGENPAIRS,
    cost=Cost.ASSIGNMENT,
)
PROJECTION_ERROR_ROTATED = Measure(
    "projection_error_rotated",
    "J_proj with the best rotation",
    projection_error_rotated,
    scope=Scope.VALUES,
    guard=EIGENPAIRS,
    cost=Cost.EIGENPAIRS,
)
PROJECTION_ALIGNMENT_MATCHED = Measure(
    "projection_alignment_matched",
    "similarity of outputs and projected queries, with the best order and signs",
    projection_alignment_matched,
    scope=Scope.VALUES,
    closer="higher",
    ideal=1.0,
    guard=EIGENPAIRS,
    cost=Cost.ASSIGNMENT,
)
PROJECTION_ALIGNMENT_ROTATED = Measure(
    "projection_alignment_rotated",
    "similarity of outputs and projected queries, with the best rotation",
    projection_alignment_rotated,
    scope=Scope.VALUES,
    closer="higher",
    ideal=1.0,
    guard=EIGENPAIRS,
    cost=Cost.EIGENPAIRS,
)
PROJECTION_ERROR_FLOOR = Measure(
    "projection_error_floor",
    "J_proj of kernel PCA itself",
    projection_error_floor,
    scope=Scope.VALUES,
    guard=EIGENPAIRS,
    cost=Cost.EIGENPAIRS,
)
