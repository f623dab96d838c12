"""The covariance and the training settings that a user describes."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from attnaudit.errors import UsageError
from attnaudit.gaussian.checks import check_covariance
from attnaudit.gaussian.covariance import harmonic_eigenvalues, random_covariance
from attnaudit.gaussian.experiments.findings import seeded
from attnaudit.gaussian.training import HeadOptimiser, HeadRecipe
from attnaudit.sources.matrices import read_matrix


def covariance_for(dim: int | None, path: Path | None, seed: int, device: str, *, default: int) -> Tensor:
    """A covariance from a file, or one of a dimension with eigenvalues 1, 1/2, 1/3, … and random eigenvectors.

    Raises:
        UsageError: the file has another dimension, or dimension 1.
    """
    if path is None:
        eigenvalues = harmonic_eigenvalues(default if dim is None else dim, device)
        return random_covariance(eigenvalues, seeded(seed, device))
    covariance = torch.tensor(read_matrix(path), device=device)
    check_covariance(covariance)
    if len(covariance) < 2:
        raise UsageError(f"The dimension of a covariance must be ≥ 2, got 1 from {path}.")
    if dim not in (None, len(covariance)):
        raise UsageError(f"{path} has dimension {len(covariance)}, but --dim is {dim}: omit --dim.")
    return covariance


def recipe_for(steps: int, prompts: int | None, queries: int, rate: float, optimiser: str, length: int) -> HeadRecipe:
    """The training settings; short prompts are used in larger batches."""
    enough = max(64, 2048 // length) if prompts is None else prompts
    kind = HeadOptimiser(optimiser)
    return HeadRecipe(steps=steps, prompts=enough, queries=queries, rate=rate, optimiser=kind)
