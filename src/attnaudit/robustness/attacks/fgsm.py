"""The fast gradient sign method."""

from __future__ import annotations

from torch import Tensor

from attnaudit.robustness.attacks.problem import Problem


def fgsm(problem: Problem, epsilon: float) -> Tensor:
    """One step, x + ε·sign ∇L(x), clipped (Goodfellow et al. 2015): optimal for a linear model."""
    _, gradient, _ = problem.gradient(problem.images)
    return problem.project(problem.images + epsilon * gradient.sign(), epsilon)
