"""Are the coefficients that the values imply eigenvectors of K̃? The test the study calls infeasible.

V = G(I - 1_N)A is solved for A by least squares: the pseudo-inverse of the centring matrix is itself, so

    Â = (I - 1_N) G⁻¹ V,        (G⁻¹V)_i = g_i v_i ,

and the claim says that its columns are eigenvectors of K̃ and that G⁻¹V was centred to begin with.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import PerHead
from attnaudit.kernel.spans import Span
from attnaudit.measures.gamma import gammas, mean_absolute_difference, mean_relative_difference
from attnaudit.measures.guards import EIGENPAIRS, EIGENVECTORS, VISIBLE_KERNEL
from attnaudit.measures.measure import Cost, Measure, Scope
from attnaudit.measures.measure_input import MeasureInput
from attnaudit.measures.subspace import of_unit_length

Columns = Float[Tensor, "heads tokens dim"]


def weighted_values(at: MeasureInput) -> Columns:
    """G⁻¹V up to a factor per head, which none of the measures sees: g is divided by its largest value."""
    log_mass = at.keys.spectrum.log_mass
    mass = torch.exp((log_mass - log_mass.amax(dim=-1, keepdim=True)).double())
    return at.values.value * mass[:, :, None]


def implied_coefficients(at: MeasureInput) -> Columns:
    """Â, up to the same factor."""
    weighted = at.shared(weighted_values)
    return weighted - weighted.mean(dim=1, keepdim=True)


def eigenvector_residual(at: MeasureInput) -> PerHead:
    """Mean over columns of ‖K̃â - ρâ‖/‖K̃â‖ with the Rayleigh quotient ρ = âᵀK̃â/âᵀâ; 0 for eigenvectors."""
    implied, image = at.shared(implied_coefficients), at.shared(_image)
    rayleigh = (implied * image).sum(dim=1) / implied.square().sum(dim=1)
    return (_norm(image - rayleigh[:, None, :] * implied) / _norm(image)).mean(dim=-1)


def centering_defect(at: MeasureInput) -> PerHead:
    """‖1ᵀG⁻¹V‖ / (√N ‖G⁻¹V‖), 0 if the claim's equation has a solution at all."""
    weighted = at.shared(weighted_values)
    defect: Tensor = torch.linalg.vector_norm(weighted.sum(dim=1), dim=-1) / (
        at.heads.tokens**0.5 * torch.linalg.matrix_norm(weighted)
    )
    return defect


def subspace_overlap(at: MeasureInput) -> PerHead:
    """‖Q_ÂᵀA‖²_F/d, 1 if Â spans the leading eigenvectors, in whatever basis."""
    implied = at.shared(implied_coefficients)
    shared = Span.of(of_unit_length(implied)).coordinates(at.keys.spectrum.eigenvectors.double())
    return shared.square().sum(dim=(1, 2)) / implied.shape[-1]


def implied_gamma(at: MeasureInput) -> Columns:
    """γ of Teo & Nguyen's test (eq. 11) on Â."""
    factor = torch.exp(at.keys.spectrum.log_scale)[:, None, None]
    return gammas(at.shared(_image) * factor, at.shared(implied_coefficients))


def _image(at: MeasureInput) -> Columns:
    """K̃Â, up to the factor that was divided out of K̃."""
    return at.keys.spectrum.times(at.shared(implied_coefficients))


def _norm(columns: Columns) -> Float[Tensor, "heads dim"]:
    return columns.square().sum(dim=1).sqrt()


EIGENVECTOR_RESIDUAL = Measure(
    "eigenvector_residual",
    "‖K̃â - ρâ‖/‖K̃â‖ of Â = (I-1)G⁻¹V, mean",
    eigenvector_residual,
    scope=Scope.VALUES,
    closer="lower",
    ideal=0.0,
    guard=EIGENVECTORS,
    cost=Cost.EIGENPAIRS,
    every_reference=False,
)
CENTERING_DEFECT = Measure(
    "centering_defect",
    "‖1ᵀG⁻¹V‖/(√N‖G⁻¹V‖)",
    centering_defect,
    scope=Scope.VALUES,
    closer="lower",
    ideal=0.0,
    guard=EIGENPAIRS,
    cost=Cost.EIGENPAIRS,
    every_reference=False,
)
SUBSPACE_OVERLAP = Measure(
    "subspace_overlap",
    "overlap of the span of Â with the leading eigenvectors",
    subspace_overlap,
    scope=Scope.VALUES,
    closer="higher",
    ideal=1.0,
    guard=EIGENVECTORS,
    cost=Cost.EIGENPAIRS,
    every_reference=False,
)
GAMMA_ABS = Measure(
    "gamma_abs",
    "|γ_i - γ_j| of Â, mean over pairs of tokens",
    lambda at: mean_absolute_difference(at.shared(implied_gamma)).mean(dim=-1),
    scope=Scope.VALUES,
    guard=VISIBLE_KERNEL,
    cost=Cost.EIGENPAIRS,
)
GAMMA_REL = Measure(
    "gamma_rel",
    "|γ_i - γ_j| of Â over the larger of the two, mean over pairs of tokens",
    lambda at: mean_relative_difference(at.shared(implied_gamma)).mean(dim=-1),
    scope=Scope.VALUES,
    closer="lower",
    ideal=0.0,
    guard=VISIBLE_KERNEL,
    cost=Cost.EIGENPAIRS,
    every_reference=False,
)
