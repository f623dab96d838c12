"""What the laboratory's tests share: seeded generators and covariances with a known answer."""

import torch

from attnaudit.gaussian import harmonic_eigenvalues, random_covariance


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def harmonic(dim, seed=0):
    """λᵢ = 1/i, random eigenvectors."""
    return random_covariance(harmonic_eigenvalues(dim), seeded(seed))


def parameter(dim, rank=None, seed=1, size=0.8):
    """A random vector (rank None) or matrix, of the order of an optimum."""
    noise = torch.randn(dim, rank or 1, generator=seeded(seed), dtype=torch.float64)
    noise = size * noise / noise.norm(dim=0)
    return noise[:, 0] if rank is None else noise
