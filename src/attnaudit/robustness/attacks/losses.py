"""Losses that an attacker maximises, one number per image."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

_SMALL = 1e-12

Logits = Float[Tensor, "images classes"]
Labels = Int64[Tensor, "images"]
PerImage = Float[Tensor, "images"]


def cross_entropy(logits: Logits, labels: Labels) -> PerImage:
    """-log softmax(z)_y."""
    return functional.cross_entropy(logits, labels, reduction="none")


def margin(logits: Logits, labels: Labels) -> PerImage:
    """max_{i≠y} z_i - z_y (Carlini & Wagner 2017): positive if the image is misclassified."""
    own = logits.gather(1, labels[:, None])
    others = logits.scatter(1, labels[:, None], -torch.inf)
    return others.amax(dim=1) - own[:, 0]


def targeted_logit_ratio(logits: Logits, labels: Labels, targets: Labels) -> PerImage:
    """(z_t - z_y) / (z_π1 - (z_π3 + z_π4)/2) (Croce & Hein 2020, eq. 6); with fewer than four classes z_t - z_y."""
    ahead = difference(logits, labels, targets)
    if logits.shape[1] < 4:
        return ahead
    first, _, third, fourth = logits.topk(4, dim=1).values.unbind(1)
    return ahead / (first - (third + fourth) / 2 + _SMALL)


def difference(logits: Logits, labels: Labels, targets: Labels) -> PerImage:
    """z_t - z_y: by how much a target class leads the label."""
    return (logits.gather(1, targets[:, None]) - logits.gather(1, labels[:, None]))[:, 0]
