"""Eigenpairs of the centred, normalised Gram matrix K̃ of a head's keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnaudit.errors import NumericalError, ShapeError
from attnaudit.kernel.graded import graded_eigenpairs
from attnaudit.kernel.gram import Keys, PerHead, PerToken, Square, centred, normalised_gram, temperature

BOUND_SLACK = 1e-9
#: Relative accuracy asked of the smallest kept eigenvalue before the dearer graded solver is called.
ACCURACY = 1e-6


@dataclass(frozen=True)
class Spectrum:
    """The leading eigenpairs of K̃ = exp(log_scale) · `centred_gram`, largest first.

    Attributes:
        scaled_eigenvalues: eigenvalues of `centred_gram`; μ = exp(log_scale) · these.
        eigenvectors: unit length, one per column; their signs are arbitrary.
        log_scale: what was divided out of the matrix to keep it in range.
        log_mass: log g_i, the logarithm of each token's kernel row sum.
        centred_gram: the matrix itself, for tests that multiply with it.
        numerical_rank: how many of *all* eigenvalues stand above rounding.
    """

    scaled_eigenvalues: Float[Tensor, "heads rank"]
    eigenvectors: Float[Tensor, "heads tokens rank"]
    log_scale: PerHead
    log_mass: PerToken
    centred_gram: Square
    numerical_rank: Int[Tensor, "heads"]

    @property
    def eigenvalues(self) -> Float[Tensor, "heads rank"]:
        """μ, the eigenvalues of K̃ itself (N times those of the feature covariance)."""
        return self.scaled_eigenvalues * torch.exp(self.log_scale)[:, None]

    @property
    def matrix(self) -> Square:
        """K̃ at its own scale; underflows to zero where the keys are huge."""
        return self.centred_gram * torch.exp(self.log_scale)[:, None, None]

    @property
    def bound_ratio(self) -> PerHead:
        """μ₁ · min_i g_i, which is in (0, 1] for every set of keys.

        K_φ = D^-½ S D^-½ with D = diag(g) and S similar to a stochastic matrix, so μ₁ ≤ ‖K_φ‖ ≤ 1/min g; centring
        does not increase it.
        """
        log_largest = torch.log(self.scaled_eigenvalues[:, 0]) + self.log_scale
        return torch.exp(log_largest + self.log_mass.amin(dim=-1))


def spectrum(keys: Keys, rank: int | None = None, *, scale: PerHead | None = None) -> Spectrum:
    """The `rank` leading eigenpairs (the head's width by default) for keys of any size, in float64.

    Heads whose kernel spans more orders of magnitude than float64 has digits are solved again by
    `attnaudit.kernel.graded`.

    Raises:
        NumericalError: an eigenvalue exceeds its provable bound, which only a faulty solver can bring about.
    """
    gram = normalised_gram(keys, scale)
    matrix = centred(gram.matrix)
    values, vectors = eigenpairs(matrix)
    result = from_ascending(matrix, values, vectors, rank_for(keys, rank), gram.log_scale, gram.log_mass)
    result = _with_graded_heads(result, keys, scale)
    if (result.bound_ratio > 1 + BOUND_SLACK).any():
        worst = result.bound_ratio.nan_to_num().amax().item()
        raise NumericalError(f"The largest eigenvalue came out {worst:.6f} times its bound 1/min g: solver failure.")
    return result


def _with_graded_heads(spectrum: Spectrum, keys: Keys, scale: PerHead | None) -> Spectrum:
    """The spectrum with those heads replaced whose smaller eigenvalues drowned in the rounding of the largest."""
    rank = spectrum.scaled_eigenvalues.shape[1]
    uncertain = spectrum.scaled_eigenvalues[:, -1] * ACCURACY < _rounding(
        spectrum.scaled_eigenvalues[:, 0], keys.shape[1]
    )
    uncertain &= spectrum.numerical_rank > 0
    if rank >= keys.shape[1] or not uncertain.any():  # centring leaves N - 1 eigenpairs at most
        return spectrum
    values, vectors = spectrum.scaled_eigenvalues.clone(), spectrum.eigenvectors.clone()
    ranks = spectrum.numerical_rank.clone()
    factors = temperature(keys.double(), scale).flatten().tolist()
    for head in uncertain.nonzero().flatten().tolist():
        solved = graded_eigenpairs(keys[head].double().numpy(force=True), factors[head])
        if solved is not None:
            values[head] = values.new_tensor(solved[0][:rank])
            vectors[head] = vectors.new_tensor(solved[1][:, :rank])
            ranks[head] = int((solved[0] > torch.finfo(torch.float64).tiny).sum())
    return replace(spectrum, scaled_eigenvalues=values, eigenvectors=vectors, numerical_rank=ranks)


def eigenpairs(matrix: Square) -> tuple[PerToken, Square]:
    """All eigenpairs, ascending; NaN for a matrix that is not finite."""
    finite = matrix.isfinite().all(dim=-1).all(dim=-1)
    with one_thread():
        if finite.all():
            values, vectors = torch.linalg.eigh(matrix)
        else:
            values, vectors = matrix.new_full(matrix.shape[:2], torch.nan), torch.full_like(matrix, torch.nan)
            values[finite], vectors[finite] = torch.linalg.eigh(matrix[finite])
    return values, vectors


def from_ascending(
    matrix: Square,
    values: PerToken,
    vectors: Square,
    rank: int,
    log_scale: PerHead,
    log_mass: PerToken,
) -> Spectrum:
    """A `Spectrum` from LAPACK's ascending eigenpairs."""
    noise = _rounding(values.abs().amax(dim=-1, keepdim=True), values.shape[-1])
    return Spectrum(
        scaled_eigenvalues=values[:, -rank:].flip(-1),
        eigenvectors=vectors[:, :, -rank:].flip(-1),
        log_scale=log_scale,
        log_mass=log_mass,
        centred_gram=matrix,
        numerical_rank=(values > noise).sum(dim=-1),
    )


def _rounding(largest: Tensor, tokens: int) -> Tensor:
    """How far an eigenvalue of an ordinary solver may be off."""
    return largest * tokens * torch.finfo(largest.dtype).eps


def rank_for(keys: Keys, rank: int | None) -> int:
    """How many eigenpairs to keep: as asked, or the head's width, and never more than there are tokens."""
    if rank is not None and not 1 <= rank <= keys.shape[1]:
        raise ShapeError(f"rank is {rank}, but a head of {keys.shape[1]} tokens has 1 to {keys.shape[1]} eigenpairs.")
    return min(keys.shape[2], keys.shape[1]) if rank is None else rank


@contextmanager
def one_thread() -> Iterator[None]:
    """Small batched LAPACK calls are slower on several CPU threads than on one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
