"""The fast gradient sign method: one step."""

from __future__ import annotations

from torch import Tensor

from attnaudit.robustness.attacks.problem import Problem


def fgsm(problem: Problem, epsilon: float) -> Tensor:
    """One step, x + ε·sign ∇L(x), clipped (Goodfellow et al. 2015): the optimum of a linear model."""
    _, gradient, _ = problem.gradient(problem.images)
    return problem.within(problem.images + epsilon * gradient.sign(), epsilon)
