"""AutoAttack: four parameter-free attacks, each on the images that survived the previous ones."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attnaudit.robustness.attacks.apgd import apgd, targeted_apgd
from attnaudit.robustness.attacks.fab import targeted_fab
from attnaudit.robustness.attacks.problem import Problem
from attnaudit.robustness.attacks.square import square

#: The attacks of the standard version, in order.
_MEMBERS: tuple[Callable[[Problem, float, int], Tensor], ...] = (
    lambda problem, epsilon, steps: apgd(problem, epsilon, steps=steps),
    lambda problem, epsilon, steps: targeted_apgd(problem, epsilon, steps=steps),
    lambda problem, epsilon, steps: targeted_fab(problem, epsilon, steps=steps),
    lambda problem, epsilon, steps: square(problem, epsilon, steps=50 * steps),
)


def autoattack(problem: Problem, epsilon: float, *, steps: int = 100) -> Tensor:
    """APGD on cross-entropy, targeted APGD, targeted FAB and Square (Croce & Hein 2020), in l_∞.

    Args:
        problem: images, labels, model.
        epsilon: the largest change of a pixel value.
        steps: iterations of each gradient attack, 100 in the standard version; Square makes fifty times as many
        queries.
    """
    adversarial = problem.images.clone()
    remaining = ~problem.fooled(problem.logits(problem.images))
    for member in _MEMBERS:
        if not bool(remaining.any()):
            break
        left = problem.subset(remaining)
        tried = member(left, epsilon, steps)
        fooled = torch.zeros_like(remaining)
        fooled[remaining] = left.fooled(left.logits(tried))
        adversarial[fooled] = tried[fooled[remaining]]
        remaining &= ~fooled
    return adversarial
