"""Size of the kernel-PCA eigenvalues of the keys: Tables 2 and 3, and the bound they obey."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.spectra import Spectrum


def eigenvalue_statistics(spectrum: Spectrum) -> dict[str, Float[Tensor, "heads"]]:
    """Largest, smallest, mean and lower median of |μ| over the kept ranks, not divided by N.

    Ranks are sorted in every head, so averaging these over heads gives what the study gets by averaging rank by rank
    first and taking the statistics afterwards.
    """
    sizes = spectrum.eigenvalues.abs()
    return {
        "eigenvalue_max": sizes.amax(dim=-1),
        "eigenvalue_min": sizes.amin(dim=-1),
        "eigenvalue_mean": sizes.mean(dim=-1),
        "eigenvalue_median": sizes.median(dim=-1).values,
    }


def eigenvalue_bound(spectrum: Spectrum) -> dict[str, Float[Tensor, "heads"]]:
    """μ₁·min g, which cannot exceed 1 (see `Spectrum.bound_ratio`)."""
    return {"eigenvalue_bound_ratio": spectrum.bound_ratio}
