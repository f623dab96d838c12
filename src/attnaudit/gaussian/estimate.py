"""Monte Carlo means and their standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from attnaudit.gaussian.checks import check_length
from attnaudit.gaussian.head import Kernel, reconstruction_loss
from attnaudit.gaussian.risk import Weights, as_matrix
from attnaudit.gaussian.tokens import TokenSource

#: The most numbers a simulation holds at once; larger ones run in pieces.
_PIECE = 2**24


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error."""

    mean: float
    standard_error: float

    def z(self, theory: float, theory_error: float = 0.0) -> float:
        """How many standard errors the mean lies above theory, which may itself have a standard error."""
        return (self.mean - theory) / math.hypot(self.standard_error, theory_error)


def estimate(values: Float[Tensor, "draws"]) -> Estimate:
    """The mean of independent draws."""
    return Estimate(float(values.mean()), float(values.std() / math.sqrt(len(values))))


def simulated_risk(
    kernel: Kernel,
    weights: Weights,
    source: TokenSource,
    length: int,
    prompts: int,
    generator: Generator,
    queries: int | None = None,
) -> Estimate:
    """The risk from random prompts; the mean over the queries of one prompt is one draw."""
    check_length(length)
    query_count = length if queries is None else queries
    numbers = length * (len(weights) + (query_count if kernel is Kernel.SOFTMAX else 0))
    piece = max(1, _PIECE // numbers)
    losses = [
        reconstruction_loss(
            kernel, source.draw(min(piece, prompts - start), length, generator), as_matrix(weights), queries
        )
        for start in range(0, prompts, piece)
    ]
    return estimate(torch.cat(losses))
