"""The Square attack: random squares, without gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from attnaudit.robustness.attacks.losses import margin
from attnaudit.robustness.attacks.problem import Problem, per_image

_FIRST_SHARE = 0.8
#: The numbers of queries, out of 10,000, after which the area of a square halves.
_HALVED_AFTER = (10, 50, 200, 500, 1_000, 2_000, 4_000, 6_000, 8_000)
#: Queries between checks whether any image is left; rare, because a check synchronises with the device.
_CHECK_EVERY = 100


def square(problem: Problem, epsilon: float, *, steps: int = 5_000) -> Tensor:
    """Random search (Andriushchenko et al. 2020): start from stripes of ±ε, keep squares of ±ε that raise the margin.

    Squares shrink over time; every image has its own position and signs, one sign per channel. `steps` counts queries.
    """
    count, channels, height, width = problem.images.shape
    images = problem.project(problem.images + epsilon * problem.random_signs(count, channels, 1, width), epsilon)
    losses = margin(problem.logits(images), problem.labels)
    rows = torch.arange(height, device=images.device).view(1, 1, -1, 1)
    columns = torch.arange(width, device=images.device).view(1, 1, 1, -1)
    for query in range(steps):
        side = _side(query, steps, height, width)
        top, left = (_positions(problem, size - side + 1) for size in (height, width))
        chosen = (rows >= top) & (rows < top + side) & (columns >= left) & (columns < left + side)
        painted = problem.images + epsilon * problem.random_signs(count, channels, 1, 1)
        tried = problem.project(torch.where(chosen, painted, images), epsilon)
        new = margin(problem.logits(tried), problem.labels)
        better = new > losses
        losses, images = torch.where(better, new, losses), torch.where(per_image(better), tried, images)
        if query % _CHECK_EVERY == 0 and bool((losses > 0).all()):
            break
    return images


def _positions(problem: Problem, count: int) -> Tensor:
    drawn = torch.randint(0, count, (len(problem.images),), generator=problem.generator, device=problem.images.device)
    return per_image(drawn)


def _side(query: int, steps: int, height: int, width: int) -> int:
    """The side of a square that covers a share of the image."""
    halvings = sum(query * 10_000 / steps > after for after in _HALVED_AFTER)
    covered = _FIRST_SHARE / 2**halvings * height * width
    return int(min(max(1, round(covered**0.5)), height, width))
