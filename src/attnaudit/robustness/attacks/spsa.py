"""SPSA: descent along gradients estimated from the model's outputs alone."""

from __future__ import annotations

import torch
from torch import Tensor

from attnaudit.robustness.attacks.losses import margin
from attnaudit.robustness.attacks.problem import Problem, per_image


def spsa(
    problem: Problem, epsilon: float, *, steps: int = 40, samples: int = 128, rate: float = 0.01, probe: float = 0.01
) -> Tensor:
    """Simultaneous perturbation (Spall 1992), as an attack by Uesato et al. (2018): Adam on the margin.

    The gradient is the mean over random signs v of v·(L(x + cv) - L(x - cv)) / 2c; it does not use the model's
    gradient, which therefore cannot be masked.

    Args:
        problem: images, labels, model.
        epsilon: the largest change of a pixel value.
        steps: steps of Adam.
        samples: pairs of queries per step.
        rate: the learning rate of Adam.
        probe: c.
    """
    change = torch.zeros_like(problem.images)
    mean, square = torch.zeros_like(change), torch.zeros_like(change)
    for step in range(1, steps + 1):
        gradient = _estimated_gradient(problem, problem.images + change, samples, probe)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient.square()
        scaled = (mean / (1 - 0.9**step)) / ((square / (1 - 0.999**step)).sqrt() + 1e-8)
        change = problem.project(problem.images + change + rate * scaled, epsilon) - problem.images
    return problem.project(problem.images + change, epsilon)


def _estimated_gradient(problem: Problem, images: Tensor, samples: int, probe: float) -> Tensor:
    """The gradient from pairs of queries; both queries of a pair are one batch."""
    total = torch.zeros_like(images)
    labels = problem.labels.repeat(2)
    for _ in range(samples):
        signs = problem.random_signs(*images.shape)
        up, down = margin(problem.logits(torch.cat([images + probe * signs, images - probe * signs])), labels).chunk(2)
        total += per_image(up - down) * signs
    return total / (2 * probe * samples)
