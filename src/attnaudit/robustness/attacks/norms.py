"""How far an image is from its original: power means over its numbers, so that one ε has one scale in every norm."""

from __future__ import annotations

from enum import StrEnum

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.robustness.attacks.problem import per_image


class Norm(StrEnum):
    """‖δ‖_p / n^{1/p} of the n numbers of an image.

    An ε of 1/255 is one grey level: of every pixel at most (`max`, l_∞), in root mean square (`rms`, l_2 of ε√n), or on
    average (`mean`, l_1 of εn). The balls contain each other in that order.
    """

    MAX = "max"
    RMS = "rms"
    MEAN = "mean"


def distance(change: Tensor, norm: Norm) -> Float[Tensor, "images"]:
    """The power mean of every image."""
    flat = change.flatten(1)
    if norm is Norm.MAX:
        return flat.abs().amax(dim=1)
    return flat.abs().mean(dim=1) if norm is Norm.MEAN else flat.square().mean(dim=1).sqrt()


def onto_rms_ball(change: Tensor, epsilon: float) -> Tensor:
    """The nearest change whose root mean square is ε at most."""
    length = distance(change, Norm.RMS)
    return change * per_image(torch.where(length > epsilon, epsilon / length, 1.0))


def onto_mean_ball(change: Tensor, epsilon: float) -> Tensor:
    """The nearest change whose mean absolute value is ε at most: soft thresholding (Duchi et al. 2008)."""
    flat = change.flatten(1)
    descending = flat.abs().sort(dim=1, descending=True).values
    places = torch.arange(1, flat.shape[1] + 1, device=flat.device, dtype=flat.dtype)
    thresholds = (descending.cumsum(dim=1) - epsilon * flat.shape[1]) / places
    last = (descending > thresholds).sum(dim=1, keepdim=True) - 1
    threshold = thresholds.gather(1, last.clamp(min=0)).clamp(min=0)
    return (flat.sign() * (flat.abs() - threshold).clamp(min=0)).view_as(change)
