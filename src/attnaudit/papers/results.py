"""What repeating a table or a figure of the study gives: our numbers, the published ones beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attnaudit.papers.forensics import EigenvalueMatch
from attnaudit.papers.head_figures import GammaRecord, NormRecord
from attnaudit.papers.tables import Comparison
from attnaudit.papers.training_curves import CurveRecord


@dataclass(frozen=True)
class RepeatedTable:
    """A table: each number beside the published one, the run folder, and the allclose tests that pass, by model."""

    name: str
    path: Path
    comparisons: tuple[Comparison, ...]
    allclose: Mapping[str, tuple[int, int]]
    replay_error: float | None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """As plain data."""
        return [asdict(entry) for entry in self.comparisons]


@dataclass(frozen=True)
class RepeatedFigure:
    """A figure: the numbers that are drawn, and the folder it is in."""

    name: str
    path: Path
    records: tuple[NormRecord | GammaRecord | CurveRecord, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """As plain data."""
        return [asdict(record) for record in self.records]


@dataclass(frozen=True)
class Forensics:
    """What every convention gives for Teo & Nguyen's eigenvalues, by model, and the folder of the tables."""

    name: str
    path: Path
    findings: Mapping[str, tuple[EigenvalueMatch, ...]]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """As plain data."""
        return [
            {"model": model, **finding.record()} for model, findings in self.findings.items() for finding in findings
        ]
