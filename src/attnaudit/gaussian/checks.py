"""Validation of the laboratory's arguments."""

from __future__ import annotations

import torch
from torch import Tensor

from attnaudit.errors import ShapeError, UsageError

#: The rounding error allowed in a computed covariance, relative to its largest entry.
_ASYMMETRY = 1e-10


def check_covariance(covariance: Tensor) -> None:
    """Check that this is a symmetric positive definite matrix."""
    shape = tuple(covariance.shape)
    if covariance.ndim != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise ShapeError(f"A covariance must be a square matrix, got shape {shape}.")
    if not covariance.isfinite().all():
        raise UsageError("The covariance has entries that are not finite: remove them first.")
    asymmetry = float((covariance - covariance.mT).abs().max())
    if asymmetry > _ASYMMETRY * float(covariance.abs().max()):
        raise UsageError(
            f"The covariance is not symmetric: it differs from its transpose by up to {asymmetry:.3g}. "
            "Pass (Σ + Σᵀ)/2 to symmetrise it."
        )
    eigenvalues = torch.linalg.eigvalsh(covariance)
    if eigenvalues[0] <= eigenvalues[-1] * len(covariance) * torch.finfo(covariance.dtype).eps:
        raise UsageError(
            f"The covariance is not positive definite: its smallest eigenvalue is {float(eigenvalues[0]):.3g}, and its "
            f"largest {float(eigenvalues[-1]):.3g}. Remove the directions without variance."
        )


def check_weights(weights: Tensor, covariance: Tensor) -> None:
    """Check that the parameter has the dimension of the data."""
    if weights.ndim not in (1, 2) or weights.shape[0] != covariance.shape[-1]:
        raise ShapeError(
            f"A parameter must have shape (dim,) or (dim, rank), but {tuple(weights.shape)} does not fit a covariance "
            f"of shape {tuple(covariance.shape)}."
        )


def check_length(length: int) -> None:
    """Check that a prompt has at least two tokens."""
    if not isinstance(length, int) or length < 2:
        raise UsageError(f"The length of a prompt must be ≥ 2, got {length}.")


def check_degrees(degrees: int) -> None:
    """Check the degrees of freedom n of a Wishart distribution."""
    if degrees < 1:
        raise UsageError(f"n of a Wishart covariance must be ≥ 1, got {degrees}.")


def check_spike(theta: float) -> None:
    """Check that a spike adds variance."""
    if not theta >= 0:
        raise UsageError(f"θ of the spike I + θvvᵀ must be ≥ 0, got {theta:g}.")
