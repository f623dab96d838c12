"""The same quantities as computed by the reproduction study's scripts: float32, plain `exp`, guards.

If keys are large, `exp` overflows and the result is NaN, or g_i g_j overflows and the matrix is zero. Both are kept,
because the published numbers contain them; `problems` of the prediction lists the affected heads.
"""

from __future__ import annotations

import math

import torch

from attnaudit.kernel.eigen import rank_for
from attnaudit.kernel.gram import Keys, PerToken, Square, centred
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.solvers import eigenpairs
from attnaudit.kernel.spectra import Spectrum, from_ascending

KERNEL_GUARD = 1e-6


def spectrum(keys: Keys, rank: int | None = None, *, by_magnitude: bool = False) -> Spectrum:
    """Eigenpairs of K̃ from float32 `exp(KKᵀ/√d) / (g gᵀ + 1e-6)`; NaN for heads where that overflows.

    The study orders eigenpairs by |μ| for Table 1 (`by_magnitude`) and by μ for Tables 2 and 3. The two can differ,
    because float32 noise makes the smallest eigenvalues negative.
    """
    matrix, log_mass = centred_gram(keys.float())
    values, vectors = eigenpairs(matrix)
    kept = rank_for(keys, rank)
    if by_magnitude:
        order = values.abs().argsort(dim=-1, stable=True)
        last = order[:, None, -kept:].expand(-1, vectors.shape[1], -1)
        values, vectors = values.gather(-1, order), vectors.gather(-1, last)
    zeros = torch.zeros_like(values[:, 0])
    return from_ascending(matrix, values, vectors, kept, zeros, log_mass, "float32")


def centred_gram(keys: Keys) -> tuple[Square, PerToken]:
    """K̃ and log g in the precision of the keys."""
    kernel = torch.exp(keys @ keys.mT / math.sqrt(keys.shape[-1]))
    mass = kernel.sum(dim=-1)
    return centred(kernel / (mass[:, :, None] * mass[:, None, :] + KERNEL_GUARD)), torch.log(mass)


def kernel_pca_values(spectrum: Spectrum) -> Prediction:
    """V̇ = G A - G 1_N A with unit eigenvectors and G = diag(1/g), in float32."""
    inverse_mass = torch.exp(-spectrum.log_mass)[:, :, None]
    vectors = spectrum.eigenvectors
    values = inverse_mass * vectors - inverse_mass * vectors.mean(dim=1, keepdim=True)
    return Prediction(values, torch.zeros_like(spectrum.log_scale), problems(spectrum))


def problems(spectrum: Spectrum) -> tuple[str | None, ...]:
    """Why float32 fails for a head, or None: NaN from overflow, or zeros where g_i g_j is infinite."""
    overflowed = ~spectrum.scaled_eigenvalues.isfinite().all(dim=-1)
    vanished = spectrum.log_mass.amax(dim=-1) * 2 > math.log(torch.finfo(torch.float32).max)
    words = {
        (True, True): "float32 exp overflows in the kernel",
        (True, False): "the keys are not finite",
        (False, True): "g·g overflows in float32, which zeroes kernel entries",
    }
    return tuple(words.get(pair) for pair in zip(overflowed.tolist(), vanished.tolist(), strict=True))
