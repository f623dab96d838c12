"""Distances of images from their originals, as power means, so that ε has the same scale in every norm."""

from __future__ import annotations

from enum import StrEnum

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.robustness.attacks.problem import per_image


class Norm(StrEnum):
    """‖δ‖_p / n^{1/p} for the n pixel values of an image.

    An ε of 1/255 is one grey level: at most (`max`, l_∞), in root mean square (`rms`, l_2 of ε√n), or on average
    (`mean`, l_1 of εn). Each ball contains the previous one.
    """

    MAX = "max"
    RMS = "rms"
    MEAN = "mean"


def distance(change: Tensor, norm: Norm) -> Float[Tensor, "images"]:
    """The distance of every image."""
    flat = change.flatten(1)
    if norm is Norm.MAX:
        return flat.abs().amax(dim=1)
    return flat.abs().mean(dim=1) if norm is Norm.MEAN else flat.square().mean(dim=1).sqrt()


def project_to_rms_ball(change: Tensor, epsilon: float) -> Tensor:
    """The nearest change whose root mean square is at most ε."""
    length = distance(change, Norm.RMS)
    return change * per_image(torch.where(length > epsilon, epsilon / length, 1.0))


def project_to_mean_ball(change: Tensor, epsilon: float) -> Tensor:
    """The nearest change whose mean absolute value is at most ε, by soft thresholding (Duchi et al. 2008)."""
    flat = change.flatten(1)
    descending = flat.abs().sort(dim=1, descending=True).values
    counts = torch.arange(1, flat.shape[1] + 1, device=flat.device, dtype=flat.dtype)
    thresholds = (descending.cumsum(dim=1) - epsilon * flat.shape[1]) / counts
    last = (descending > thresholds).sum(dim=1, keepdim=True) - 1
    threshold = thresholds.gather(1, last.clamp(min=0)).clamp(min=0)
    return (flat.sign() * (flat.abs() - threshold).clamp(min=0)).view_as(change)
