"""Recovering a spike from few tasks: the Baik-Ben Arous-Péché transition of PCA, and attention."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from attnaudit.gaussian.checks import check_spike
from attnaudit.gaussian.readout import cosine
from attnaudit.gaussian.risk import Covariance, infinite_prompt
from attnaudit.gaussian.training import minimise, random_start


def bbp_overlap(theta: float, gamma: float) -> float:
    """cos² of PCA's first component with the spike of I + θvvᵀ, for large d and samples with γ = d/samples fixed.

    (1 - γ/θ²)/(1 + γ/θ) above θ = √γ, else 0 (Baik, Ben Arous & Péché 2005; Paul 2007).
    """
    check_spike(theta)
    # Exactly at the transition, rounding error must not decide.
    return (1 - gamma / theta**2) / (1 + gamma / theta) if theta**2 > gamma * (1 + 1e-12) else 0.0


def attention_overlap(
    tasks: Float[Tensor, "tasks dim dim"], direction: Float[Tensor, "dim"], generator: Generator, starts: int = 2
) -> float:
    """cos²(μ, v) where μ minimises the mean of R∞ over these tasks; the best of several random starts.

    For one task this is PCA of its covariance. For several it is not PCA of their mean: a mean of quartic risks weights
    tasks differently, and needs a larger θ. We know of no theory for that shift.
    """
    risk, pooled = infinite_prompt(), tasks.mean(dim=0)
    # Start from Σ̄·noise: with fewer vectors than dimensions, the part of μ that the risk does not depend on stays 0.
    found = [
        minimise(lambda w: risk(w, tasks).mean(), pooled @ random_start(pooled, 1, generator)) for _ in range(starts)
    ]
    best = min(found, key=lambda weights: float(risk(weights, tasks).mean()))
    return float(cosine(best[:, 0], direction)) ** 2


def pooled_overlap(tasks: Float[Tensor, "tasks dim dim"], direction: Float[Tensor, "dim"]) -> float:
    """cos² of the first principal component of the mean covariance with v."""
    pooled: Covariance = tasks.mean(dim=0)
    return float(cosine(torch.linalg.eigh(pooled).eigenvectors[:, -1], direction)) ** 2
