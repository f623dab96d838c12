"""Sources of random prompts (prompts, length, dim)."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from attnaudit.gaussian.checks import check_degrees
from attnaudit.gaussian.covariance import principal_axes, second_moment, square_root

Prompts = Float[Tensor, "prompts length dim"]


@typing.runtime_checkable
class TokenSource(typing.Protocol):
    """A distribution of prompts."""

    def draw(self, prompts: int, length: int, generator: Generator) -> Prompts:
        """Fresh prompts."""


@dataclass(frozen=True)
class GaussianTokens:
    """Tokens N(0, Σ), as the theory assumes."""

    covariance: Float[Tensor, "dim dim"]

    def draw(self, prompts: int, length: int, generator: Generator) -> Prompts:
        """Fresh prompts."""
        return _noise(self.covariance, (prompts, length), generator) @ self._root

    @cached_property
    def _root(self) -> Float[Tensor, "dim dim"]:
        return square_root(self.covariance)


@dataclass(frozen=True)
class SkewedTokens:
    """Σᵢ √λᵢ (Eᵢ - 1) vᵢ with Eᵢ ~ Exp(1): the covariance is Σ, but every component is skewed.

    A negative control. Linear attention depends on second moments and still finds v₁; softmax follows the gradient of
    the cumulant generating function, of which Σ is only the first term, and must fail.
    """

    covariance: Float[Tensor, "dim dim"]

    def draw(self, prompts: int, length: int, generator: Generator) -> Prompts:
        """Fresh prompts."""
        eigenvalues, vectors = self._axes
        waits = torch.empty(prompts, length, len(eigenvalues), dtype=vectors.dtype, device=vectors.device)
        waits.exponential_(generator=generator)
        return (waits - 1) * eigenvalues.sqrt() @ vectors.mT

    @cached_property
    def _axes(self) -> tuple[Float[Tensor, "dim"], Float[Tensor, "dim dim"]]:
        return principal_axes(self.covariance)


@dataclass(frozen=True)
class WishartTokens:
    """In-context learning: each prompt has its own covariance, Wishart(V, n)/n.

    The division by n keeps parameters of order one: μ here is √n times the μ of the unnormalised setting.
    """

    scale: Float[Tensor, "dim dim"]
    degrees: int

    def __post_init__(self) -> None:
        check_degrees(self.degrees)

    def draw(self, prompts: int, length: int, generator: Generator) -> Prompts:
        """Fresh tasks, with one prompt each."""
        vectors = _noise(self.scale, (prompts, self.degrees), generator) @ self._root
        mixing = torch.randn(prompts, length, self.degrees, generator=generator, dtype=vectors.dtype,
                             device=vectors.device)  # fmt: skip
        tokens: Tensor = mixing @ vectors / self.degrees**0.5
        return tokens

    def covariances(self, tasks: int, generator: Generator) -> Float[Tensor, "tasks dim dim"]:
        """The covariances of fresh tasks, for prompts of infinite length."""
        return second_moment(_noise(self.scale, (tasks, self.degrees), generator) @ self._root)

    @cached_property
    def _root(self) -> Float[Tensor, "dim dim"]:
        return square_root(self.scale)


@dataclass(frozen=True)
class ResampledTokens:
    """Rows of a data set, drawn with replacement."""

    data: Float[Tensor, "rows dim"]

    def draw(self, prompts: int, length: int, generator: Generator) -> Prompts:
        """Fresh prompts."""
        rows = torch.randint(len(self.data), (prompts, length), generator=generator, device=self.data.device)
        return self.data[rows]


def _noise(like: Tensor, shape: tuple[int, int], generator: Generator) -> Prompts:
    return torch.randn(*shape, like.shape[-1], generator=generator, dtype=like.dtype, device=like.device)
