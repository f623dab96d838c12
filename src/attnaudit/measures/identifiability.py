"""Can a head tell theories apart at all?"""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.spectra import Spectrum


def identifiability(spectrum: Spectrum) -> dict[str, Float[Tensor, "heads"]]:
    """`kernel_rank`: how many eigenvalues of K̃ stand above rounding.

    With N - 1 ≤ d, or rank ≤ d, the leading d eigenvectors span the whole centred space and every test of spans passes
    by construction. A head counts in a verdict only if N ≥ 2d and its rank is above d.
    """
    return {"kernel_rank": spectrum.numerical_rank.double()}
