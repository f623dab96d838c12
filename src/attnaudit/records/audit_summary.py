"""The `summary.json` of an audit: statistics, verdicts, and what the names in them mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from attnaudit.errors import SettingError
from attnaudit.records.later_fields import added_later
from attnaudit.records.schema import OBSERVED, Role
from attnaudit.records.verdict import BestTheory, Rank, Verdict


@dataclass(frozen=True)
class Statistic:
    """One measure on one model under one reference; `n` heads counted, `rejected` heads missing, by reason."""

    mean: float | None
    median: float | None
    max: float | None
    min: float | None
    interval: tuple[float, float] | None
    input_std: float | None
    n: int
    rejected: Mapping[str, int]

    @property
    def lost(self) -> int:
        """How many heads are missing."""
        return sum(self.rejected.values())


#: By measure.
Statistics = Mapping[str, Statistic]


@dataclass(frozen=True)
class CaptureSummary:
    """How well attention was captured: the largest replay error, and the layers that were refused, with reasons."""

    replay_error: float | None
    refused_layers: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ClaimWords:
    """What a reader of a run needs to know of a claim, which may be its author's own; see `Claim`."""

    statement: str
    citation: str
    theory: str
    limits: str = ""
    heads_have: str = added_later("")


@dataclass(frozen=True)
class MeasureWords:
    """What a reader of a run needs to know of a measure, which may be its author's own."""

    text: str
    closer: str
    ideal: float | None


@dataclass(frozen=True)
class ReferenceWords:
    """The same of a reference."""

    text: str
    role: Role


@dataclass(frozen=True)
class AuditSummary:
    """The `summary.json` of an audit.

    `models` has the statistics of every model and reference, for the first theory; `other_theories` those of observed
    heads for every other theory. `skipped_inputs` are (name, reason). `measures`, `references` and `claims` say what
    the names mean. `levels` are the confidence levels of intervals, by claim. All that comes from judging claims is
    empty where none were judged.
    """

    models: Mapping[str, Mapping[str, Statistics]]
    other_theories: Mapping[str, Mapping[str, Statistics]]
    capture: CaptureSummary
    skipped_inputs: tuple[tuple[str, str], ...]
    measures: Mapping[str, MeasureWords] = field(default_factory=dict)
    references: Mapping[str, ReferenceWords] = field(default_factory=dict)
    claims: Mapping[str, ClaimWords] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    ranking: tuple[Rank, ...] = ()
    best_theories: tuple[BestTheory, ...] = ()
    levels: Mapping[str, float] = field(default_factory=dict)
    threshold: float | None = None
    chance: float | None = None

    def __post_init__(self) -> None:
        for verdict in self.verdicts:
            if verdict.claim not in self.claims:
                raise SettingError(f"claims.{verdict.claim} is missing, although there is a verdict on it.")
            if verdict.model not in self.models:
                raise SettingError(f"models.{verdict.model} is missing, although there is a verdict on it.")

    def observed(self, model: str) -> Statistics:
        """The statistics of a model's own heads."""
        return self.models[model].get(OBSERVED, {})
