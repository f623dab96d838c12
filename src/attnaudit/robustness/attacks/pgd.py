"""Projected gradient descent: many small steps from a random start."""

from __future__ import annotations

from torch import Tensor

from attnaudit.robustness.attacks.problem import Problem


def pgd(problem: Problem, epsilon: float, *, steps: int = 20, relative_step: float | None = None) -> Tensor:
    """Steps x ← Π(x + α·sign ∇L(x)) from a uniform start in the ball (Madry et al. 2018); the last iterate.

    Args:
        problem: images, labels, model.
        epsilon: the largest change of a pixel value.
        steps: iterations.
        relative_step: α/ε; by default 2.5/steps, which lets an iterate cross the ball.
    """
    step = (2.5 / steps if relative_step is None else relative_step) * epsilon
    images = problem.project(problem.images + epsilon * problem.uniform_noise(), epsilon)
    for _ in range(steps):
        _, gradient, _ = problem.gradient(images)
        images = problem.project(images + step * gradient.sign(), epsilon)
    return images
