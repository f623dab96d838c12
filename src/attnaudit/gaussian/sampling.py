"""The error of the direction found in finite data.

The population minimiser is exactly along v₁ at every length, so the error depends only on the amount of data:

    one prompt of L tokens, each a query, linear     E sin² = Λ/L        (the top eigenvector of Ŝ, exactly)
    N prompts, the first token a query               E sin² = κ_L Λ/N
    N prompts, every token a query                   E sin² = κ′_L Λ/(NL)

to first order, where Λ is the asymptotic variance of PCA (Anderson 1963) and κ → 1 as L grows. Derived here.
"""

from __future__ import annotations

import torch
from torch import Generator

from attnaudit.errors import UsageError
from attnaudit.gaussian.covariance import principal_axes
from attnaudit.gaussian.estimate import Estimate, estimate
from attnaudit.gaussian.head import Kernel, reconstruction_loss
from attnaudit.gaussian.optimum import Optimum
from attnaudit.gaussian.risk import Covariance
from attnaudit.gaussian.tokens import GaussianTokens


def pca_variance(covariance: Covariance) -> float:
    """Λ = Σ_{j≥2} λ₁λ_j/(λ₁ - λ_j)²: N·E sin²(v̂₁, v₁) of PCA on N Gaussian samples."""
    eigenvalues, _ = principal_axes(covariance)
    first, others = eigenvalues[0], eigenvalues[1:]
    if float(first - others[0]) <= 1e-9 * float(first):
        raise UsageError("The two largest eigenvalues are equal, so no eigenvector leads: choose another covariance.")
    return float((first * others / (first - others).square()).sum())


def sampling_inflation(
    kernel: Kernel,
    covariance: Covariance,
    length: int,
    best: Optimum,
    prompts: int,
    generator: Generator,
    *,
    all_queries: bool = False,
) -> Estimate:
    """κ_L: the ratio of sin² to that of PCA on as many queries, from the sandwich formula Var(∇)/H².

    The curvature across v₁ is H_j = 2(g_L(s)/s)λ_j(λ_j - λ₁) for any kernel; the variance of a prompt's gradient at the
    optimum is simulated. For linear attention κ → 1 from above: at finite length a head uses its tokens less
    efficiently than PCA.
    """
    eigenvalues, vectors = principal_axes(covariance)
    others = eigenvalues[1:]
    curvature = 2 * best.gain / best.size.mean * others * (others - eigenvalues[0])
    tokens = GaussianTokens(covariance).draw(prompts, length, generator)
    # One copy of the parameter per prompt, so that one backward pass gives the gradient of every prompt.
    weights = best.point[:, None].expand(prompts, -1, 1).clone().requires_grad_()
    loss = reconstruction_loss(kernel, tokens, weights, None if all_queries else 1).sum()
    (gradient,) = torch.autograd.grad(loss, weights)
    steps = gradient[:, :, 0] @ vectors[:, 1:] / curvature
    squared_sines = steps.square().sum(dim=1) / best.point.square().sum()
    queries = length if all_queries else 1
    return estimate(squared_sines * queries / pca_variance(covariance))
