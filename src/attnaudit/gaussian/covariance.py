"""Covariances with known principal axes, and the tasks of the in-context setting."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from attnaudit.errors import ShapeError, UsageError
from attnaudit.gaussian.checks import check_degrees, check_spike

Covariance = Float[Tensor, "dim dim"]


def random_covariance(eigenvalues: Float[Tensor, "dim"], generator: Generator) -> Covariance:
    """A covariance with these eigenvalues and uniformly random eigenvectors (QR of Gaussian noise, diag R > 0)."""
    if not (eigenvalues > 0).all():
        raise UsageError(f"The eigenvalues of a covariance must be positive, got {eigenvalues.min():.3g}.")
    noise = torch.randn(len(eigenvalues), len(eigenvalues), generator=generator, dtype=eigenvalues.dtype,
                        device=eigenvalues.device)  # fmt: skip
    basis, triangle = torch.linalg.qr(noise)
    basis = basis * triangle.diagonal().sign()
    covariance = basis * eigenvalues @ basis.mT
    symmetric: Tensor = (covariance + covariance.mT) / 2
    return symmetric


def harmonic_eigenvalues(dim: int, device: str = "cpu") -> Float[Tensor, "dim"]:
    """λᵢ = 1/i: one clearly leading eigenvalue and a long tail."""
    if dim < 2:
        raise UsageError(f"The dimension must be ≥ 2, got {dim}.")
    return 1 / torch.arange(1, dim + 1, dtype=torch.float64, device=device)


def spiked_scale(direction: Float[Tensor, "dim"], theta: float) -> Covariance:
    """V = I + θvvᵀ with v the unit vector along `direction`; without a spike, θ = 0, no direction stands out."""
    check_spike(theta)
    unit = direction / direction.norm()
    return torch.eye(len(unit), dtype=unit.dtype, device=unit.device) + theta * torch.outer(unit, unit)


def wishart(scale: Covariance, degrees: int, tasks: int, generator: Generator) -> Float[Tensor, "tasks dim dim"]:
    """Σ = Σ_r x_r x_rᵀ of n vectors x_r ~ N(0, V) for each task, unnormalised as in Maulen-Soto & Boyer (2026)."""
    check_degrees(degrees)
    noise = torch.randn(tasks, degrees, len(scale), generator=generator, dtype=scale.dtype, device=scale.device)
    vectors = noise @ square_root(scale)
    return vectors.mT @ vectors


def principal_axes(covariance: Covariance) -> tuple[Float[Tensor, "dim"], Covariance]:
    """PCA of the distribution: eigenvalues from large to small, and eigenvectors as columns."""
    eigenvalues, vectors = torch.linalg.eigh(covariance)
    return eigenvalues.flip(0), vectors.flip(1)


def square_root(covariance: Covariance) -> Covariance:
    """The symmetric square root of a positive semidefinite matrix."""
    eigenvalues, vectors = torch.linalg.eigh(covariance)
    root: Tensor = vectors * eigenvalues.clamp_min(0).sqrt() @ vectors.mT
    return root


def second_moment(tokens: Float[Tensor, "*batch length dim"]) -> Float[Tensor, "*batch dim dim"]:
    """Ŝ = (1/L) Σ_l x_l x_lᵀ."""
    if tokens.ndim < 2:
        raise ShapeError(f"Tokens must have shape (…, length, dim), got {tuple(tokens.shape)}.")
    return tokens.mT @ tokens / tokens.shape[-2]
