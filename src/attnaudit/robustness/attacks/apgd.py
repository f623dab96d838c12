"""APGD: projected gradient descent with an adaptive step."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from attnaudit.robustness.attacks.losses import cross_entropy, targeted_logit_ratio
from attnaudit.robustness.attacks.problem import Loss, Problem, per_image

_MOMENTUM = 0.75
#: The step is kept while at least this share of the iterations since the last checkpoint raised the loss.
_ENOUGH = 0.75


def apgd(problem: Problem, epsilon: float, *, steps: int = 100, loss: Loss = cross_entropy) -> Tensor:
    """Auto-PGD (Croce & Hein 2020, Algorithm 1): the first iterate that fools, else the one with the largest loss.

    z = Π(x_k + η·sign ∇L(x_k)), x_{k+1} = Π(x_k + a(z - x_k) + (1 - a)(x_k - x_{k-1})), a = 0.75, η = 2ε at first. At
    checkpoints, which become more frequent, an image whose loss rises too rarely or has stalled continues from its best
    iterate with half the step.
    """
    images = problem.project(problem.images + epsilon * problem.uniform_noise(), epsilon)
    losses, gradient, logits = problem.gradient(images, loss)
    best, best_loss, best_gradient = images, losses, gradient
    found, fooled = images, problem.fooled(logits)
    step = torch.full_like(losses, 2 * epsilon)
    rises, halved, loss_at_checkpoint = torch.zeros_like(losses), torch.ones_like(fooled), losses
    checkpoints, previous, last_checkpoint = _checkpoints(steps), images, 0
    for iteration in range(1, steps + 1):
        momentum = _MOMENTUM if iteration > 1 else 1.0
        ahead = problem.project(images + per_image(step) * gradient.sign(), epsilon)
        moved = images + momentum * (ahead - images) + (1 - momentum) * (images - previous)
        previous, images = images, problem.project(moved, epsilon)
        earlier = losses
        losses, gradient, logits = problem.gradient(images, loss)
        rises += losses > earlier
        new = problem.fooled(logits) & ~fooled
        found, fooled = torch.where(per_image(new), images, found), fooled | new
        better = losses > best_loss
        best_loss = torch.where(better, losses, best_loss)
        best = torch.where(per_image(better), images, best)
        best_gradient = torch.where(per_image(better), gradient, best_gradient)
        if iteration in checkpoints:
            seldom = rises < _ENOUGH * (iteration - last_checkpoint)
            stalled = ~halved & (best_loss <= loss_at_checkpoint)
            halved = seldom | stalled
            step = torch.where(halved, step / 2, step)
            images = torch.where(per_image(halved), best, images)
            gradient = torch.where(per_image(halved), best_gradient, gradient)
            losses = torch.where(halved, best_loss, losses)
            rises, loss_at_checkpoint, last_checkpoint = torch.zeros_like(rises), best_loss, iteration
    return torch.where(per_image(fooled), found, best)


def targeted_apgd(problem: Problem, epsilon: float, *, steps: int = 100, targets: int = 9) -> Tensor:
    """APGD towards each of the likeliest other classes, with the targeted logit ratio as loss.

    As many classes are tried at a time as there is room for; the last one that fools is kept.
    """
    adversarial = problem.images
    others = likeliest_other_classes(problem.logits(problem.images), problem.labels, targets)
    for group in problem.together(others):
        several = problem.repeated(group.shape[1])
        loss = partial(targeted_logit_ratio, targets=group.mT.flatten())
        tried = apgd(several, epsilon, steps=steps, loss=loss)
        fooled = several.fooled(several.logits(tried))
        for images, new in zip(several.each(tried), several.each(fooled), strict=True):
            adversarial = torch.where(per_image(new), images, adversarial)
    return adversarial


def likeliest_other_classes(logits: Tensor, labels: Tensor, count: int) -> Tensor:
    """The `count` classes with the largest logits other than the label; all others if there are fewer."""
    others = logits.scatter(1, labels[:, None], -torch.inf)
    return others.topk(min(count, logits.shape[1] - 1), dim=1).indices


def _checkpoints(steps: int) -> frozenset[int]:
    """Checkpoints at shares p_0 = 0, p_1 = 0.22, p_{j+1} = p_j + max(p_j - p_{j-1} - 0.03, 0.06) of the steps."""
    before, share, found = 0.0, 0.22, set()
    while share <= 1:
        found.add(max(1, round(share * steps)))
        before, share = share, share + max(share - before - 0.03, 0.06)
    return frozenset(found)
