"""Uniform noise: the attack of someone who knows nothing about the model."""

from __future__ import annotations

from torch import Tensor

from attnaudit.robustness.attacks.problem import Problem


def noise(problem: Problem, epsilon: float) -> Tensor:
    """The image plus U(-ε, ε), clipped."""
    return problem.project(problem.images + epsilon * problem.uniform_noise(), epsilon)
