"""The γ test: if a is an eigenvector of K̃, then (K̃a)_i / (N a_i) is the same number for every token i.

Teo & Nguyen (2024, eq. 11) look at the differences |γ_i - γ_j| over all pairs of tokens. They are elementwise ratios,
so entries of a near zero dominate them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import Square

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


def gammas(matrix: Square, vectors: Columns) -> Columns:
    """γ = K̃A / (N·A), entry by entry."""
    return (matrix @ vectors) / (vectors * matrix.shape[-1])


def gamma_differences(matrix: Square, vectors: Columns) -> GammaDifferences:
    """All N(N-1)/2 differences of each component; one component's pairs are in memory at a time."""
    values = gammas(matrix, vectors)
    rows, columns = torch.triu_indices(values.shape[1], values.shape[1], offset=1, device=values.device)
    statistics = []
    for component in values.unbind(dim=-1):
        left, right = component[:, rows], component[:, columns]
        absolute = (left - right).abs_()
        relative = absolute / torch.maximum(left.abs_(), right.abs_()).add_(RELATIVE_GUARD)
        statistics.append(
            (absolute.mean(dim=-1), absolute.std(dim=-1), relative.mean(dim=-1), relative.std(dim=-1)),
        )
    return GammaDifferences(*(torch.stack(column, dim=-1) for column in zip(*statistics, strict=True)))


def perturbed(vectors: Columns, seed: int) -> Columns:
    """The study's "random" vectors: an orthonormal basis (QR) of A + 0.1·N(0, 1).

    Entries of A are about 1/√N, so for N = 197 the noise has column norm 1.4 against 1: no small perturbation.
    """
    generator = torch.Generator(device="cpu").manual_seed(seed)
    noise = torch.randn(vectors.shape[1:], generator=generator, dtype=torch.float64).to(vectors)
    return torch.linalg.qr(vectors + NOISE * noise).Q


def study_gamma(matrix: Square, vectors: Columns, seed: int = 0) -> dict[str, Float[Tensor, "heads"]]:
    """Figure 3 in four numbers per head: mean difference for true and for perturbed eigenvectors."""
    true, random = gamma_differences(matrix, vectors), gamma_differences(matrix, perturbed(vectors, seed))
    return {
        "gamma_abs_true": true.absolute_mean.mean(dim=-1),
        "gamma_rel_true": true.relative_mean.mean(dim=-1),
        "gamma_abs_perturbed": random.absolute_mean.mean(dim=-1),
        "gamma_rel_perturbed": random.relative_mean.mean(dim=-1),
    }
