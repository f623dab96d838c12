"""FAB: move along the decision boundary towards the original image."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from attnaudit.robustness.attacks.apgd import likeliest_other_classes
from attnaudit.robustness.attacks.losses import difference
from attnaudit.robustness.attacks.norms import Norm, distance
from attnaudit.robustness.attacks.problem import Problem, image_sums, per_image

_LARGEST_PULL, _OVERSHOOT, _BACK = 0.1, 1.05, 0.9
#: Bisection steps for the length of a projection, enough for float32.
_HALVINGS = 24


def targeted_fab(problem: Problem, epsilon: float, *, steps: int = 100, targets: int = 9) -> Tensor:
    """The fast adaptive boundary attack (Croce & Hein 2020b), towards each of the likeliest other classes.

    The boundary z_t = z_y is linearised at the iterate; iterate and original are projected onto it, and the next
    iterate lies between the two projections, 5 % beyond the boundary. After an iterate that fools, the next iteration
    starts a tenth of the way back. The result is the nearest image that fools, if it is in the ball. As many classes
    are tried at a time as there is room for.
    """
    logits = problem.logits(problem.images)
    best, nearest = problem.images, torch.where(problem.fooled(logits), 0, torch.inf).to(problem.images)
    for group in problem.together(likeliest_other_classes(logits, problem.labels, targets)):
        several = problem.repeated(group.shape[1])
        found, away = _nearest(several, group.mT.flatten(), steps)
        for images, length in zip(several.each(found), several.each(away), strict=True):
            closer = length < nearest
            nearest, best = torch.where(closer, length, nearest), torch.where(per_image(closer), images, best)
    return torch.where(per_image(nearest <= epsilon), best, problem.images)


def _nearest(problem: Problem, target: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """The nearest iterate that fools, and how far away it is: infinitely, if none does."""
    images = best = problem.images
    nearest = torch.full_like(image_sums(images), torch.inf)
    for _ in range(steps):
        images = _beyond_boundary(problem, images, target)
        fooled = problem.fooled(problem.logits(images))
        away = distance(images - problem.images, Norm.MAX)
        closer = fooled & (away < nearest)
        nearest, best = torch.where(closer, away, nearest), torch.where(per_image(closer), images, best)
        back = problem.images + _BACK * (images - problem.images)
        images = torch.where(per_image(fooled), back, images)
    return best, nearest


def _beyond_boundary(problem: Problem, images: Tensor, target: Tensor) -> Tensor:
    """A step across the linear boundary; iterates far from it are pulled towards the original, by at most a tenth."""
    ahead, gradient, _ = problem.gradient(images, partial(difference, targets=target))
    offset = -ahead + image_sums(gradient * images)
    here = _onto_plane(images, gradient, offset, problem.bounds)
    there = _onto_plane(problem.images, gradient, offset, problem.bounds)
    lengths = [distance(change, Norm.MAX) for change in (here, there)]
    pull = per_image((lengths[0] / (lengths[0] + lengths[1]).clamp(min=1e-12)).clamp(max=_LARGEST_PULL))
    return problem.clip((1 - pull) * (images + _OVERSHOOT * here) + pull * (problem.images + _OVERSHOOT * there))


def _onto_plane(images: Tensor, normal: Tensor, offset: Tensor, bounds: tuple[float, float]) -> Tensor:
    """The change d of least ‖d‖_∞ with w·(x + d) = b and x + d in the bounds, or the best one if there is none.

    d = clip(±t·sign w), and w·(x + d) is monotone in t, so t is found by bisection.
    """
    low, high = bounds
    missing = offset - image_sums(normal * images)
    direction = normal.sign() * per_image(missing.sign())
    shortest = torch.zeros_like(missing)
    longest = torch.full_like(missing, high - low)
    for _ in range(_HALVINGS):
        middle = (shortest + longest) / 2
        change = (images + per_image(middle) * direction).clamp(low, high) - images
        enough = image_sums(normal * change).abs() >= missing.abs()
        longest, shortest = torch.where(enough, middle, longest), torch.where(enough, shortest, middle)
    return (images + per_image(longest) * direction).clamp(low, high) - images
