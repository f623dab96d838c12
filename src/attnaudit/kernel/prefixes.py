"""Kernel PCA of what the tokens of a causal head see.

Query i sees the keys S_i, which end with its own; without a window these are the keys 1…i. Their kernel has masses
g_j^(i) = Σ_{l∈S_i} k(k_j, k_l). Eigenvectors of a centred matrix are orthogonal to 1, so kernel PCA of every S_i needs

    Σ_{j∈S_i} g_j^(i) v_j = 0      for all i,

a triangular system with positive diagonal, which only V = 0 solves.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit.kernel.gram import Keys, PerHead, normalised_gram, temperature
from attnaudit.kernel.solvers import eigenpairs

#: The logarithm of the mass of every key for every query; -inf for keys that it does not see.
LogMasses = Float[Tensor, "heads queries tokens"]


def log_masses(keys: Keys, seen: Bool[Tensor, "#heads tokens tokens"], scale: PerHead | None = None) -> LogMasses:
    """The logarithm of g_j^(i), a row for each query, in float64."""
    keys = keys.double()
    scores = keys @ keys.mT * temperature(keys, scale)
    tokens = keys.shape[1]
    prefixes = torch.ones(tokens, tokens, dtype=torch.bool, device=keys.device).tril()
    if bool((seen == prefixes).all()):
        found = torch.logcumsumexp(scores, dim=2).mT
    else:
        hidden = torch.where(seen, 0.0, -torch.inf).to(scores)
        found = torch.stack([torch.logsumexp(scores + hidden[:, None, row], dim=-1) for row in range(tokens)], dim=1)
    return found.masked_fill(~seen, -torch.inf)


def centring_defects(masses: LogMasses, values: Float[Tensor, "heads tokens dim"]) -> Float[Tensor, "heads queries"]:
    """‖Σ_j g_j v_j‖ / Σ_j g_j‖v_j‖ for the keys that each query sees: 0 for centred values and for V = 0, at most 1."""
    weights = torch.exp(masses - masses.amax(dim=-1, keepdim=True))
    values = values.double()
    values = values / values.abs().amax(dim=(1, 2), keepdim=True).clamp_min(torch.finfo(values.dtype).tiny)
    lengths: Tensor = torch.linalg.vector_norm(values, dim=-1)
    together: Tensor = torch.linalg.vector_norm(weights @ values, dim=-1)
    alone = (weights @ lengths[:, :, None])[:, :, 0]
    return torch.where(alone > 0, together / alone, 0.0)


def determined_share(masses: LogMasses) -> PerHead:
    """The share of rows of the triangular system that have a non-zero diagonal: 1 if only V = 0 solves it."""
    return masses.diagonal(dim1=1, dim2=2).isfinite().double().mean(dim=-1)


def uncentred_values(keys: Keys, rank: int, scale: PerHead | None = None) -> Float[Tensor, "heads tokens rank"]:
    """G A with the leading eigenvectors A of K_φ itself: kernel PCA without centring, which the theorem leaves open."""
    gram = normalised_gram(keys, scale)
    _, vectors = eigenpairs(gram.matrix)
    lightest = gram.log_mass.amin(dim=-1, keepdim=True)
    return vectors[:, :, -rank:].flip(-1) * torch.exp(lightest - gram.log_mass)[:, :, None]
