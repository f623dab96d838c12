"""Are the coefficients that the values imply eigenvectors of K̃? The test the study calls infeasible.

V = G(I - 1_N)A is solved for A by least squares: the pseudo-inverse of the centring matrix is itself, so

    Â = (I - 1_N) G⁻¹ V,        (G⁻¹V)_i = g_i v_i ,

and the claim says that its columns are eigenvectors of K̃ and that G⁻¹V was centred to begin with.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.spectra import Spectrum
from attnaudit.measures.gamma import gamma_differences
from attnaudit.measures.subspace import orthonormal

Columns = Float[Tensor, "heads tokens dim"]


def eigenvector_measures(heads: Heads, spectrum: Spectrum) -> dict[str, Float[Tensor, "heads"]]:
    """Three ways to ask it of each head.

    `eigenvector_residual`: mean over columns of ‖K̃â - ρâ‖/‖K̃â‖ with the Rayleigh quotient ρ = âᵀK̃â/âᵀâ; 0 for
    eigenvectors. `centering_defect`: ‖1ᵀG⁻¹V‖ / (√N ‖G⁻¹V‖), 0 if the claim's equation has a solution at all.
    `subspace_overlap`: ‖Q_ÂᵀA‖²_F/d, 1 if Â spans the leading eigenvectors, in whatever basis.
    """
    weighted = weighted_values(heads, spectrum)
    implied = weighted - weighted.mean(dim=1, keepdim=True)
    image = spectrum.times(implied)
    rayleigh = (implied * image).sum(dim=1) / implied.square().sum(dim=1)
    residual = _norm(image - rayleigh[:, None, :] * implied) / _norm(image)
    defect = torch.linalg.vector_norm(weighted.sum(dim=1), dim=-1) / (
        heads.tokens**0.5 * torch.linalg.matrix_norm(weighted)
    )
    overlap = (orthonormal(implied).mT @ spectrum.eigenvectors.double()).square().sum(dim=(1, 2)) / implied.shape[-1]
    return {"eigenvector_residual": residual.mean(dim=-1), "centering_defect": defect, "subspace_overlap": overlap}


def implied_gamma(heads: Heads, spectrum: Spectrum) -> dict[str, Float[Tensor, "heads"]]:
    """Teo & Nguyen's γ test (eq. 11) on Â: mean |γ_i - γ_j| over pairs of tokens and columns, absolute and relative."""
    weighted = weighted_values(heads, spectrum)
    implied = weighted - weighted.mean(dim=1, keepdim=True)
    differences = gamma_differences(spectrum.image(implied), implied)
    return {
        "gamma_abs": differences.absolute_mean.mean(dim=-1),
        "gamma_rel": differences.relative_mean.mean(dim=-1),
    }


def weighted_values(heads: Heads, spectrum: Spectrum) -> Columns:
    """G⁻¹V up to a factor per head, which none of the measures sees: g is divided by its largest value."""
    mass = torch.exp((spectrum.log_mass - spectrum.log_mass.amax(dim=-1, keepdim=True)).double())
    return heads.value.double() * mass[:, :, None]


def _norm(columns: Columns) -> Float[Tensor, "heads dim"]:
    lengths: Tensor = torch.linalg.vector_norm(columns, dim=1)
    return lengths
