"""AutoAttack: four attacks without parameters, each on what the others have left standing."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from attnaudit.robustness.attacks.apgd import apgd, targeted_apgd
from attnaudit.robustness.attacks.fab import targeted_fab
from attnaudit.robustness.attacks.problem import Problem
from attnaudit.robustness.attacks.square import square

#: The standard version, in its order.
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
        epsilon: the largest change of a pixel.
        steps: of each gradient attack, 100 in the standard version; Square asks fifty times as many questions.
    """
    adversarial = problem.images.clone()
    standing = ~problem.fooled(problem.logits(problem.images))
    for member in _MEMBERS:
        if not bool(standing.any()):
            break
        left = problem.only(standing)
        tried = member(left, epsilon, steps)
        fooled = torch.zeros_like(standing)
        fooled[standing] = left.fooled(left.logits(tried))
        adversarial[fooled] = tried[fooled[standing]]
        standing &= ~fooled
    return adversarial
