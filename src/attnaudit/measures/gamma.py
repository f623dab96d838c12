"""The γ test: if a is an eigenvector of K̃, then (K̃a)_i / (N a_i) is the same number for every token i.

Teo & Nguyen (2024, eq. 11) look at the differences |γ_i - γ_j| over all pairs of tokens. They are elementwise ratios,
so entries of a near zero dominate them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import PerHead
from attnaudit.measures.guards import VISIBLE_KERNEL
from attnaudit.measures.measure import Cost, Measure, Scope
from attnaudit.measures.measure_input import MeasureInput

Columns = Float[Tensor, "heads tokens components"]
PerComponent = Float[Tensor, "heads components"]

RELATIVE_GUARD = 1e-10
NOISE = 0.1


@dataclass(frozen=True)
class GammaDifferences:
    """Mean and unbiased deviation, over all pairs of tokens, of |γ_i - γ_j| and of it over max(|γ_i|, |γ_j|)."""

    absolute_mean: PerComponent
    absolute_std: PerComponent
    relative_mean: PerComponent
    relative_std: PerComponent


def gammas(images: Columns, vectors: Columns) -> Columns:
    """γ = K̃A / (N·A), entry by entry, from `images` = K̃A."""
    return images / (vectors * vectors.shape[1])


def gamma_differences(images: Columns, vectors: Columns) -> GammaDifferences:
    """Statistics over all N(N-1)/2 pairs of tokens, in O(N log N) by sorting instead of forming the pairs."""
    values = gammas(images, vectors).double()
    pairs = values.shape[1] * (values.shape[1] - 1) / 2
    return GammaDifferences(
        *_mean_and_std(*_absolute_sums(values), pairs), *_mean_and_std(*_relative_sums(values), pairs)
    )


def _absolute_sums(values: Columns) -> tuple[PerComponent, PerComponent]:
    """Σ|γ_i - γ_j| and Σ(γ_i - γ_j)² over pairs: in sorted order γ_(k) is added k times and subtracted N-1-k times."""
    ordered = values.sort(dim=1).values
    ordered = ordered - ordered.mean(dim=1, keepdim=True)  # differences do not change, rounding does
    count = values.shape[1]
    weights = torch.arange(1 - count, count, 2, dtype=values.dtype, device=values.device)[:, None]
    squares = count * ordered.square().sum(dim=1) - ordered.sum(dim=1).square()
    return (weights * ordered).sum(dim=1), squares


def _relative_sums(values: Columns) -> tuple[PerComponent, PerComponent]:
    """Σr and Σr² of r = |γ_i - γ_j| / (max(|γ_i|, |γ_j|) + 1e-10).

    In order of size a = |γ| the larger of a pair is the later one, i. An earlier j of the same sign adds a_i - a_j, one
    of the other sign a_i + a_j, so running counts, sums and sums of squares of either sign are all that is needed.
    Sizes are taken from the smallest on where they are subtracted, which keeps nearly equal γ apart.
    """
    sizes, order = values.abs().sort(dim=1)
    positive = values.gather(1, order) > 0
    smallest = sizes[:, :1]
    shifted = sizes - smallest
    scale = sizes + RELATIVE_GUARD
    sums, squares = torch.zeros_like(sizes[:, 0]), torch.zeros_like(sizes[:, 0])
    for sign in (positive, ~positive):
        count, total, square = (_before(sign * term) for term in (torch.ones_like(sizes), shifted, shifted.square()))
        same = count * shifted - total, count * shifted.square() - 2 * shifted * total + square
        total, square = total + count * smallest, square + 2 * smallest * total + count * smallest.square()
        other = count * sizes + total, count * sizes.square() + 2 * sizes * total + square
        sums = sums + (torch.where(sign, same[0], other[0]) / scale).sum(dim=1)
        squares = squares + (torch.where(sign, same[1], other[1]) / scale.square()).sum(dim=1)
    return sums, squares


def _before(terms: Columns) -> Columns:
    """Sums over all earlier tokens."""
    return terms.cumsum(dim=1) - terms


def _mean_and_std(total: PerComponent, squares: PerComponent, count: float) -> tuple[PerComponent, PerComponent]:
    mean = total / count
    return mean, ((squares - count * mean.square()).clamp_min(0) / (count - 1)).sqrt()


def perturbed(vectors: Columns, seed: int) -> Columns:
    """The study's "random" vectors: an orthonormal basis (QR) of A + 0.1·N(0, 1).

    Entries of A are about 1/√N, so for N = 197 the noise has column norm 1.4 against 1: no small perturbation.
    """
    generator = torch.Generator(device="cpu").manual_seed(seed)
    noise = torch.randn(vectors.shape[1:], generator=generator, dtype=torch.float64).to(vectors)
    basis: Columns = torch.linalg.qr(vectors + NOISE * noise)[0]
    return basis


def _gamma_of_eigenvectors(at: MeasureInput) -> GammaDifferences:
    vectors = at.keys.spectrum.eigenvectors
    return gamma_differences(at.keys.spectrum.image(vectors), vectors)


def _gamma_of_perturbed(at: MeasureInput) -> GammaDifferences:
    vectors = perturbed(at.keys.spectrum.eigenvectors, at.seed)
    return gamma_differences(at.keys.spectrum.image(vectors), vectors)


def _measure(name: str, text: str, function: Callable[[MeasureInput], PerHead]) -> Measure:
    return Measure(
        name,
        text,
        function,
        scope=Scope.KEYS,
        closer="lower",
        ideal=0.0,
        guard=VISIBLE_KERNEL,
        cost=Cost.EIGENPAIRS,
        default=False,
    )


#: Figure 3 in four numbers per head, on request: γ of true eigenvectors is a tautology.
GAMMA_OF_EIGENVECTORS = (
    _measure(
        "gamma_abs_true",
        "|γ_i - γ_j| of the true eigenvectors, mean over pairs of tokens",
        lambda at: at.shared(_gamma_of_eigenvectors).absolute_mean.mean(dim=-1),
    ),
    _measure(
        "gamma_rel_true",
        "|γ_i - γ_j| of the true eigenvectors over the larger of the two, mean",
        lambda at: at.shared(_gamma_of_eigenvectors).relative_mean.mean(dim=-1),
    ),
    _measure(
        "gamma_abs_perturbed",
        "|γ_i - γ_j| of perturbed eigenvectors, mean over pairs of tokens",
        lambda at: at.shared(_gamma_of_perturbed).absolute_mean.mean(dim=-1),
    ),
    _measure(
        "gamma_rel_perturbed",
        "|γ_i - γ_j| of perturbed eigenvectors over the larger of the two, mean",
        lambda at: at.shared(_gamma_of_perturbed).relative_mean.mean(dim=-1),
    ),
)
