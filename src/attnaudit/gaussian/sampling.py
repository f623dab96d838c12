"""How far the direction found in finite data lies from v₁.

The population's minimiser is exactly along v₁ at every length, so the error is a matter of how much data there is:

    one prompt of L tokens, each a query, linear     E sin² = Λ/L        (the top eigenvector of Ŝ, exactly)
    N prompts, the first token a query               E sin² = κ_L Λ/N
    N prompts, every token a query                   E sin² = κ′_L Λ/(NL)

to first order, with Λ the asymptotic variance of PCA (Anderson 1963) and κ → 1 as L grows. Derived here.
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
        raise UsageError("The two largest eigenvalues are equal: there is no leading direction to be off from.")
    return float((first * others / (first - others).square()).sum())


def sampling_inflation(
    kernel: Kernel,
    covariance: Covariance,
    length: int,
    best: Optimum,
    prompts: int,
    generator: Generator,
    *,
    every_token_asks: bool = False,
) -> Estimate:
    """κ_L: how much larger sin² is than PCA's on as many queries, by the sandwich Var(∇)/H².

    The curvature across is H_j = 2(g_L(s)/s)λ_j(λ_j - λ₁) for any kernel; the variance of a prompt's gradient at the
    optimum is drawn. For linear attention κ → 1 from above: at finite length a head uses its tokens less well than PCA.
    """
    eigenvalues, vectors = principal_axes(covariance)
    others = eigenvalues[1:]
    curvature = 2 * best.gain / best.size.mean * others * (others - eigenvalues[0])
    tokens = GaussianTokens(covariance).draw(prompts, length, generator)
    # A copy of the parameter per prompt, so that one backward pass gives every prompt's own gradient.
    weights = best.point[:, None].expand(prompts, -1, 1).clone().requires_grad_()
    loss = reconstruction_loss(kernel, tokens, weights, None if every_token_asks else 1).sum()
    (gradient,) = torch.autograd.grad(loss, weights)
    steps = gradient[:, :, 0] @ vectors[:, 1:] / curvature
    squared_sines = steps.square().sum(dim=1) / best.point.square().sum()
    queries = length if every_token_asks else 1
    return estimate(squared_sines * queries / pca_variance(covariance))
