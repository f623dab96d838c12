"""The result of an experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator

from attnaudit.records.ranges import check_seed
from attnaudit.records.trials import Trials

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class TheoryCheck:
    """One row of theory | measured | z; `note` says why something is missing."""

    quantity: str
    theory: float | None
    measured: float
    standard_error: float | None = None
    note: str = ""

    @property
    def z(self) -> float | None:
        """(measured - theory) in standard errors; None without a prediction or a standard error."""
        if self.theory is None or not self.standard_error:
            return None
        return (self.measured - self.theory) / self.standard_error


@dataclass(frozen=True)
class Findings:
    """Checks for the table, trials for the verdicts, and records (dataclasses) for figures and files."""

    checks: tuple[TheoryCheck, ...]
    trials: tuple[Trials, ...] = ()
    records: tuple[Any, ...] = ()


def seeded(seed: int, device: str) -> Generator:
    """A new generator with this seed; the global one is not used."""
    check_seed(seed)
    return Generator(device=device).manual_seed(seed)


def chance_alignment(dim: int, generator: Generator, draws: int = 200) -> tuple[float, ...]:
    """cos² of random directions with a fixed one: about 1/d."""
    noise = torch.randn(draws, dim, generator=generator, dtype=torch.float64, device=generator.device)
    return tuple((noise[:, 0].square() / noise.square().sum(dim=1)).tolist())
