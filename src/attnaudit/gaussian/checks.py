"""What the laboratory refuses, in one sentence each."""

from __future__ import annotations

import torch
from torch import Tensor

from attnaudit.errors import ShapeError, UsageError

#: Rounding in a covariance that was computed, relative to its largest entry.
_ASYMMETRY = 1e-10


def check_covariance(covariance: Tensor) -> None:
    """Refuse what is not a symmetric positive definite matrix."""
    shape = tuple(covariance.shape)
    if covariance.ndim != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise ShapeError(f"A covariance is a square matrix, but this one has shape {shape}.")
    if not covariance.isfinite().all():
        raise UsageError("The covariance has entries that are not finite numbers: remove them first.")
    asymmetry = float((covariance - covariance.mT).abs().max())
    if asymmetry > _ASYMMETRY * float(covariance.abs().max()):
        raise UsageError(
            f"The covariance is not symmetric: it differs from its transpose by up to {asymmetry:.3g}; "
            "give (Σ + Σᵀ)/2 if that is what you mean."
        )
    eigenvalues = torch.linalg.eigvalsh(covariance)
    if eigenvalues[0] <= eigenvalues[-1] * len(covariance) * torch.finfo(covariance.dtype).eps:
        raise UsageError(
            f"The covariance is not positive definite: its smallest eigenvalue is {float(eigenvalues[0]):.3g}; "
            "drop the directions without variance."
        )


def check_weights(weights: Tensor, covariance: Tensor) -> None:
    """Refuse parameters of another dimension than the data."""
    if weights.ndim not in (1, 2) or weights.shape[0] != covariance.shape[-1]:
        raise ShapeError(
            f"A parameter is a vector (dim,) or a matrix (dim, rank); {tuple(weights.shape)} does not fit a covariance "
            f"of shape {tuple(covariance.shape)}."
        )


def check_length(length: int) -> None:
    """Refuse a prompt in which there is nothing to attend to."""
    if not isinstance(length, int) or length < 2:
        raise UsageError(f"A prompt of {length} tokens has nothing to attend to: the length must be 2 or more.")


def check_degrees(degrees: int) -> None:
    """Refuse a Wishart matrix made of no vectors."""
    if degrees < 1:
        raise UsageError(f"A Wishart covariance of n = {degrees} vectors does not exist: n must be 1 or more.")


def check_spike(theta: float) -> None:
    """Refuse a spike that takes variance away."""
    if not theta >= 0:
        raise UsageError(f"The spike is θ = {theta:g}, but I + θvvᵀ needs a θ of 0 or more.")
