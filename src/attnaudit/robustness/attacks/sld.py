"""Sparse l_1 descent: large changes of few pixels."""

from __future__ import annotations

import torch
from torch import Tensor

from attnaudit.robustness.attacks.norms import project_to_mean_ball
from attnaudit.robustness.attacks.problem import Problem

_SPARSITY = 0.99


def sld(problem: Problem, epsilon: float, *, steps: int = 20) -> Tensor:
    """Steepest descent in l_1 on the largest 1 % of the gradient (Tramèr & Boneh 2019).

    Every step has a tenth of the ball's radius, shared equally by the chosen pixel values; those that would cross a
    bound are not chosen. ε is the mean absolute change of an image.
    """
    images = problem.images
    chosen = max(1, round((1 - _SPARSITY) * problem.size))
    length = epsilon * problem.size / 10
    low, high = problem.bounds
    for _ in range(steps):
        _, gradient, _ = problem.gradient(images)
        stuck = ((images <= low) & (gradient < 0)) | ((images >= high) & (gradient > 0))
        size = torch.where(stuck, 0, gradient.abs()).flatten(1)
        least = size.topk(chosen, dim=1).values[:, -1:]
        direction = torch.where((size >= least) & (size > 0), gradient.flatten(1).sign(), 0)
        direction = direction / direction.abs().sum(dim=1, keepdim=True).clamp(min=1)
        change = images + length * direction.view_as(images) - problem.images
        images = problem.clip(problem.images + project_to_mean_ball(change, epsilon))
    return images
