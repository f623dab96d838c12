"""The γ test: if a is an eigenvector of K̃, then (K̃a)_i / (N a_i) is the same number for every token i.

Teo & Nguyen (2024, eq. 11) look at the differences |γ_i - γ_j| over all pairs of tokens. They are elementwise ratios,
so entries of a near zero dominate them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnaudit.kernel.gram import PerHead
from attnaudit.measures.guards import VISIBLE_KERNEL
from attnaudit.measures.measure import Cost, Measure, Scope
from attnaudit.measures.measure_input import MeasureInput

Columns = Float[Tensor, "heads tokens components"]
PerComponent = Float[Tensor, "heads components"]

RELATIVE_GUARD = 1e-10
NOISE = 0.1


def gammas(images: Columns, vectors: Columns) -> Columns:
    """γ = K̃A / (N·A), entry by entry and in float64, from `images` = K̃A."""
    return (images / (vectors * vectors.shape[1])).double()


def mean_absolute_difference(values: Columns) -> PerComponent:
    """The mean of |γ_i - γ_j| over all N(N-1)/2 pairs of tokens, in O(N log N) by sorting instead of forming the pairs.

    In sorted order γ_(k) is added k times and subtracted N-1-k times.
    """
    ordered, _ = _sorted(_lanes(values))
    ordered = ordered - ordered.mean(dim=-1, keepdim=True)  # differences do not change, rounding does
    count = values.shape[1]
    weights = torch.arange(1 - count, count, 2, dtype=values.dtype, device=values.device)
    return ordered @ weights / _pairs(count)


def mean_relative_difference(values: Columns) -> PerComponent:
    """The mean of |γ_i - γ_j| / (max(|γ_i|, |γ_j|) + 1e-10) over all pairs of tokens, likewise.

    In order of size a = |γ| the larger of a pair is the later one, i. With b = a - a_(0) and the signs s, an earlier j
    of the same sign adds b_i - b_j, one of the other sign b_i + b_j + 2a_(0): over all of them

        i·b_i - s_i·Σ s_j b_j + 2a_(0)·#{other signs},      #{other signs} = (i - s_i·Σ s_j) / 2 ,

    so two running sums are all that is needed. Subtracting the smallest size keeps nearly equal γ apart.
    """
    lanes = _lanes(values)
    sizes, order = _sorted(lanes.abs())
    signs = torch.where(lanes.gather(-1, order) > 0, 1.0, -1.0).to(sizes)
    smallest = sizes[..., :1]
    above = sizes - smallest
    earlier = torch.arange(values.shape[1], dtype=values.dtype, device=values.device)
    others = earlier - signs * _before(signs)
    sums = earlier * above - signs * _before(signs * above) + smallest * others
    return (sums / (sizes + RELATIVE_GUARD)).sum(dim=-1) / _pairs(values.shape[1])


_Lanes = Float[Tensor, "heads components tokens"]


def _lanes(values: Columns) -> _Lanes:
    """Columns as they are sorted and summed fastest: the numbers of each beside each other in memory."""
    return values.mT.contiguous()


def _sorted(lanes: _Lanes) -> tuple[_Lanes, Int[Tensor, "heads components tokens"]]:
    """The numbers of each lane in ascending order, and where they were."""
    if lanes.is_cuda:
        found = lanes.sort(dim=-1)
        return found.values, found.indices
    order = torch.from_numpy(np.argsort(lanes.numpy(), axis=-1))  # three times as fast as torch's
    return lanes.gather(-1, order), order


def _before(terms: _Lanes) -> _Lanes:
    """Sums over all earlier tokens."""
    return terms.cumsum(dim=-1) - terms


def _pairs(tokens: int) -> float:
    return tokens * (tokens - 1) / 2


def perturbed(vectors: Columns, seed: int) -> Columns:
    """The study's "random" vectors: an orthonormal basis (QR) of A + 0.1·N(0, 1).

    Entries of A are about 1/√N, so for N = 197 the noise has column norm 1.4 against 1: no small perturbation.
    """
    generator = torch.Generator(device="cpu").manual_seed(seed)
    noise = torch.randn(vectors.shape[1:], generator=generator, dtype=torch.float64).to(vectors)
    basis: Columns = torch.linalg.qr(vectors + NOISE * noise)[0]
    return basis


def _gamma_of_eigenvectors(at: MeasureInput) -> Columns:
    vectors = at.keys.spectrum.eigenvectors
    return gammas(at.keys.spectrum.image(vectors), vectors)


def _gamma_of_perturbed(at: MeasureInput) -> Columns:
    vectors = perturbed(at.keys.spectrum.eigenvectors, at.seed)
    return gammas(at.keys.spectrum.image(vectors), vectors)


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
        lambda at: mean_absolute_difference(at.shared(_gamma_of_eigenvectors)).mean(dim=-1),
    ),
    _measure(
        "gamma_rel_true",
        "|γ_i - γ_j| of the true eigenvectors over the larger of the two, mean",
        lambda at: mean_relative_difference(at.shared(_gamma_of_eigenvectors)).mean(dim=-1),
    ),
    _measure(
        "gamma_abs_perturbed",
        "|γ_i - γ_j| of perturbed eigenvectors, mean over pairs of tokens",
        lambda at: mean_absolute_difference(at.shared(_gamma_of_perturbed)).mean(dim=-1),
    ),
    _measure(
        "gamma_rel_perturbed",
        "|γ_i - γ_j| of perturbed eigenvectors over the larger of the two, mean",
        lambda at: mean_relative_difference(at.shared(_gamma_of_perturbed)).mean(dim=-1),
    ),
)
