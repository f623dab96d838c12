"""Carlini & Wagner's l_2 attack: the smallest change that fools the model."""

from __future__ import annotations

import torch
from torch import Tensor

from attnaudit.robustness.attacks.losses import margin
from attnaudit.robustness.attacks.norms import project_to_rms_ball
from attnaudit.robustness.attacks.problem import Problem, per_image

#: Pixels stay away from the bounds by this share, because atanh is infinite there.
_OFF = 1e-6


def cw(problem: Problem, epsilon: float, *, steps: int = 200) -> Tensor:
    """The smallest change found, scaled down to ε (rms) if it is larger."""
    change = smallest(problem, steps=steps) - problem.images
    return problem.clip(problem.images + project_to_rms_ball(change, epsilon))


def smallest(
    problem: Problem,
    *,
    steps: int,
    searches: int = 5,
    rate: float = 0.01,
    weight: float = 0.01,
    confidence: float = 0.0,
) -> Tensor:
    """Adam on ‖x(w) - x‖² + c·max(κ - margin, 0), x(w) = tanh scaled to the bounds (Carlini & Wagner 2017).

    c is searched for each image: by bisection between the largest value that failed and the smallest that fooled, or
    ten times larger while none has fooled. If none does, the last iterate is returned.

    Args:
        problem: images, labels, model; its bounds must be finite.
        steps: steps of Adam for every c.
        searches: the number of values of c.
        rate: the learning rate of Adam.
        weight: the first c.
        confidence: κ, the margin by which another class must lead.
    """
    low, high = problem.bounds
    middle, half = (high + low) / 2, (high - low) / 2
    original = problem.clip(problem.images)
    start = torch.atanh((original - middle) / half * (1 - _OFF))
    best = original
    nearest = torch.full_like(problem.images[:, 0, 0, 0], torch.inf)
    lower, upper = torch.zeros_like(nearest), torch.full_like(nearest, torch.inf)
    weights = torch.full_like(nearest, weight)
    for _ in range(searches):
        fooled_once = torch.zeros_like(problem.labels, dtype=torch.bool)
        free = start.clone().requires_grad_()
        adam = torch.optim.Adam([free], lr=rate)
        for _ in range(steps):
            with torch.enable_grad():
                images = middle + half * torch.tanh(free)
                ahead = margin(problem.model(images), problem.labels)
                length = (images - original).square().flatten(1).sum(dim=1)
                loss = (length + weights * (confidence - ahead).clamp(min=0)).sum()
                (free.grad,) = torch.autograd.grad(loss, free)
            adam.step()
            fooled = ahead.detach() > confidence
            closer = fooled & (length.detach() < nearest)
            nearest = torch.where(closer, length.detach(), nearest)
            best = torch.where(per_image(closer), images.detach(), best)
            fooled_once |= fooled
        upper = torch.where(fooled_once, torch.minimum(upper, weights), upper)
        lower = torch.where(fooled_once, lower, torch.maximum(lower, weights))
        weights = torch.where(upper.isfinite(), (lower + upper) / 2, weights * 10)
    return torch.where(per_image(nearest.isfinite()), best, images.detach())
