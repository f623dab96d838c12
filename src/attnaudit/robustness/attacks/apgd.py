"""APGD: projected gradient descent that finds its step by itself."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from attnaudit.robustness.attacks.losses import cross_entropy, targeted_logit_ratio
from attnaudit.robustness.attacks.problem import Loss, Problem, per_image

_MOMENTUM = 0.75
#: A step is kept while this share of the iterations since the last look raised the loss.
_ENOUGH = 0.75


def apgd(problem: Problem, epsilon: float, *, steps: int = 100, loss: Loss = cross_entropy) -> Tensor:
    """Auto-PGD (Croce & Hein 2020, Algorithm 1): the first iterate that fools, else the one of the largest loss.

    z = Π(x_k + η·sign ∇L(x_k)), x_{k+1} = Π(x_k + a(z - x_k) + (1 - a)(x_k - x_{k-1})), a = 0.75, η = 2ε at first. At
    checkpoints that come ever closer, an image whose loss rises too seldom, or has stalled, goes on from its best
    iterate with half its step.
    """
    images = problem.within(problem.images + epsilon * problem.uniform(), epsilon)
    losses, gradient, logits = problem.gradient(images, loss)
    best, best_loss, best_gradient = images, losses, gradient
    found, fooled = images, problem.fooled(logits)
    step = torch.full_like(losses, 2 * epsilon)
    rises, halved, loss_at_look = torch.zeros_like(losses), torch.ones_like(fooled), losses
    looks, previous, last_look = _checkpoints(steps), images, 0
    for iteration in range(1, steps + 1):
        momentum = _MOMENTUM if iteration > 1 else 1.0
        ahead = problem.within(images + per_image(step) * gradient.sign(), epsilon)
        moved = images + momentum * (ahead - images) + (1 - momentum) * (images - previous)
        previous, images = images, problem.within(moved, epsilon)
        earlier = losses
        losses, gradient, logits = problem.gradient(images, loss)
        rises += losses > earlier
        new = problem.fooled(logits) & ~fooled
        found, fooled = torch.where(per_image(new), images, found), fooled | new
        better = losses > best_loss
        best_loss = torch.where(better, losses, best_loss)
        best = torch.where(per_image(better), images, best)
        best_gradient = torch.where(per_image(better), gradient, best_gradient)
        if iteration in looks:
            seldom = rises < _ENOUGH * (iteration - last_look)
            stalled = ~halved & (best_loss <= loss_at_look)
            halved = seldom | stalled
            step = torch.where(halved, step / 2, step)
            images = torch.where(per_image(halved), best, images)
            gradient = torch.where(per_image(halved), best_gradient, gradient)
            losses = torch.where(halved, best_loss, losses)
            rises, loss_at_look, last_look = torch.zeros_like(rises), best_loss, iteration
    return torch.where(per_image(fooled), found, best)


def targeted_apgd(problem: Problem, epsilon: float, *, steps: int = 100, targets: int = 9) -> Tensor:
    """APGD towards each of the likeliest other classes in turn, by the targeted logit ratio."""
    adversarial, logits = problem.images, problem.logits(problem.images)
    for target in likeliest_others(logits, problem.labels, targets).unbind(1):
        tried = apgd(problem, epsilon, steps=steps, loss=partial(targeted_logit_ratio, targets=target))
        fooled = problem.fooled(problem.logits(tried))
        adversarial = torch.where(per_image(fooled), tried, adversarial)
    return adversarial


def likeliest_others(logits: Tensor, labels: Tensor, count: int) -> Tensor:
    """The classes other than the label that come first, as many as there are up to `count`."""
    others = logits.scatter(1, labels[:, None], -torch.inf)
    return others.topk(min(count, logits.shape[1] - 1), dim=1).indices


def _checkpoints(steps: int) -> frozenset[int]:
    """p_0 = 0, p_1 = 0.22, p_{j+1} = p_j + max(p_j - p_{j-1} - 0.03, 0.06), of the number of steps."""
    before, share, found = 0.0, 0.22, set()
    while share <= 1:
        found.add(max(1, round(share * steps)))
        before, share = share, share + max(share - before - 0.03, 0.06)
    return frozenset(found)
