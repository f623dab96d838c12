"""Uniform noise: what an attacker who knows nothing does."""

from __future__ import annotations

from torch import Tensor

from attnaudit.robustness.attacks.problem import Problem


def noise(problem: Problem, epsilon: float) -> Tensor:
    """The image plus U(-ε, ε), clipped."""
    return problem.within(problem.images + epsilon * problem.uniform(), epsilon)
