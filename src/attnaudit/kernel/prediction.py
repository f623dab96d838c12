"""The values of a head that a theory predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import PerHead
from attnaudit.kernel.spectra import Spectrum


@dataclass(frozen=True)
class Prediction:
    """Predicted values exp(log_scale) · `values`, up to the sign and order of the columns.

    If head h has no prediction, `problems[h]` is the reason and its `values` are NaN. A theory of what a head writes
    predicts `outputs` as well. `baseline` is what would be predicted without the theory, from which explained variance
    is counted; the mean over tokens if None. `axes`, of a linear map, are the directions of the values that it explains
    most of first.
    """

    values: Float[Tensor, "heads tokens dim"]
    log_scale: PerHead
    problems: tuple[str | None, ...]
    outputs: Float[Tensor, "heads queries dim"] | None = None
    baseline: Float[Tensor, "heads rows dim"] | None = None
    axes: Float[Tensor, "heads dim dim"] | None = None

    def among(self, places: Sequence[int]) -> Prediction:
        """What is predicted for the heads at these places."""
        chosen = list(places)
        outputs, baseline, axes = (
            None if own is None else own[chosen] for own in (self.outputs, self.baseline, self.axes)
        )
        problems = tuple(self.problems[place] for place in chosen)
        return Prediction(self.values[chosen], self.log_scale[chosen], problems, outputs, baseline, axes)


def kernel_pca_values(spectrum: Spectrum, *, unit_axes: bool = True) -> Prediction:
    """V̇ = G (I - 1_N) A = G A, the values of Teo & Nguyen (2024, eq. 8): the kernel-PCA coefficients divided by g.

    G = diag(1/g) and the columns of A are the leading eigenvectors e_m, which are orthogonal to 1, so centring changes
    nothing. With `unit_axes` they are divided by √μ_m, so that the principal axes u_m have length 1 in feature space,
    as the paper's derivation requires; without it they have unit length themselves, as in the study's scripts. Row
    cosines and CKA depend on this choice; column cosines and spans do not.
    """
    rank = spectrum.eigenvectors.shape[-1]
    coefficients = spectrum.eigenvectors
    log_scale = torch.zeros_like(spectrum.log_scale)
    if unit_axes:
        coefficients = coefficients * torch.rsqrt(spectrum.scaled_eigenvalues)[:, None, :]
        log_scale = -spectrum.log_scale / 2
    lightest = spectrum.log_mass.amin(dim=-1)
    values = coefficients * torch.exp(lightest[:, None] - spectrum.log_mass)[:, :, None]
    short = spectrum.numerical_rank < rank
    values = values.masked_fill(short[:, None, None], torch.nan)
    problems = tuple(
        known or _problem(found, rank)
        for known, found in zip(spectrum.problems, spectrum.numerical_rank.tolist(), strict=True)
    )
    return Prediction(values, log_scale - lightest, problems)


def _problem(found: int, rank: int) -> str | None:
    if found == 0:
        return "the keys are all equal"
    return f"only {found} of {rank} kernel components are above rounding error" if found < rank else None
