"""One model to measure, and where the models come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

#: The inputs of a model, as `attnaudit.capture` takes them.
Inputs = Tensor | tuple[Any, ...] | Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A model of a library, and the implementation of attention that it runs with."""

    library: str
    model: str
    implementation: str

    def __str__(self) -> str:
        return f"{self.library}/{self.model}/{self.implementation}"


class Library(Protocol):
    """Where models come from."""

    name: str
    packages: Sequence[str]
    distribution: str

    def cases(self) -> list[Case]:
        """Every model that is measured, in a fixed order."""

    def build(self, case: Case) -> tuple[nn.Module, Inputs]:
        """A small model with random weights, and two inputs for it."""


class Unsupported(Exception):
    """The library does not offer this implementation for this model."""
