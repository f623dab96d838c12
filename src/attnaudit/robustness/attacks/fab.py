"""FAB: walk along the decision boundary towards the original image."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from attnaudit.robustness.attacks.apgd import likeliest_others
from attnaudit.robustness.attacks.losses import difference
from attnaudit.robustness.attacks.norms import Norm, distance
from attnaudit.robustness.attacks.problem import Problem, per_image, sums

_LARGEST_PULL, _OVERSHOOT, _BACK = 0.1, 1.05, 0.9
#: Halvings of the interval in which the length of a projection lies: float32 has no more digits.
_HALVINGS = 24


def targeted_fab(problem: Problem, epsilon: float, *, steps: int = 100, targets: int = 9) -> Tensor:
    """The fast adaptive boundary attack (Croce & Hein 2020b), towards each of the likeliest other classes in turn.

    The boundary z_t = z_y is made linear where the iterate is; iterate and original are projected onto it, and the
    next iterate lies between the two, 5 % beyond it. Where that fools, the next iteration begins a tenth of the way
    back. The nearest image that fools counts if it is in the ball.
    """
    logits = problem.logits(problem.images)
    best, nearest = problem.images, torch.where(problem.fooled(logits), 0, torch.inf).to(problem.images)
    for target in likeliest_others(logits, problem.labels, targets).unbind(1):
        images = problem.images
        for _ in range(steps):
            images = _beyond_boundary(problem, images, target)
            fooled = problem.fooled(problem.logits(images))
            away = distance(images - problem.images, Norm.MAX)
            closer = fooled & (away < nearest)
            nearest, best = torch.where(closer, away, nearest), torch.where(per_image(closer), images, best)
            back = problem.images + _BACK * (images - problem.images)
            images = torch.where(per_image(fooled), back, images)
    return torch.where(per_image(nearest <= epsilon), best, problem.images)


def _beyond_boundary(problem: Problem, images: Tensor, target: Tensor) -> Tensor:
    """A step across the linear boundary; an iterate far from it is pulled towards the original, by a tenth at most."""
    ahead, gradient, _ = problem.gradient(images, partial(difference, targets=target))
    offset = -ahead + sums(gradient * images)
    here = _onto_plane(images, gradient, offset, problem.bounds)
    there = _onto_plane(problem.images, gradient, offset, problem.bounds)
    lengths = [distance(change, Norm.MAX) for change in (here, there)]
    pull = per_image((lengths[0] / (lengths[0] + lengths[1]).clamp(min=1e-12)).clamp(max=_LARGEST_PULL))
    return problem.inside((1 - pull) * (images + _OVERSHOOT * here) + pull * (problem.images + _OVERSHOOT * there))


def _onto_plane(images: Tensor, normal: Tensor, offset: Tensor, bounds: tuple[float, float]) -> Tensor:
    """The change d of least ‖d‖_∞ with w·(x + d) = b and x + d in the bounds; towards it where they do not meet.

    d = clip(±t·sign w), and w·(x + d) is monotone in t: t is found by halving.
    """
    low, high = bounds
    missing = offset - sums(normal * images)
    direction = normal.sign() * per_image(missing.sign())
    shortest = torch.zeros_like(missing)
    longest = torch.full_like(missing, high - low)
    for _ in range(_HALVINGS):
        middle = (shortest + longest) / 2
        change = (images + per_image(middle) * direction).clamp(low, high) - images
        enough = sums(normal * change).abs() >= missing.abs()
        longest, shortest = torch.where(enough, middle, longest), torch.where(enough, shortest, middle)
    return (images + per_image(longest) * direction).clamp(low, high) - images
