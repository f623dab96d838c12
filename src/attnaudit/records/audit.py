"""An audit as its folder has it: settings, statistics, verdicts and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import pyarrow as pa

from attnaudit.display import counted
from attnaudit.errors import RunFolderError, SettingError
from attnaudit.protocol import Protocol
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_rows import HeadRows
from attnaudit.records.keep import Keep
from attnaudit.records.later_fields import added_later
from attnaudit.records.measured_heads import MeasuredHeads
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.run_kind import RunKind
from attnaudit.records.schema import OBSERVED, Role
from attnaudit.records.verdict import BestTheory, Rank, Verdict


@dataclass(frozen=True)
class AuditConventions:
    """What decides the numbers of an audit: measures, theories and references by name, repeats, seed and device."""

    protocol: Protocol = Protocol.EXACT
    measures: tuple[str, ...] = ()
    theories: tuple[str, ...] = ("kpca",)
    references: tuple[str, ...] = ()
    repeats: int = 1
    seed: int = 0
    device: str = "cpu"


@dataclass(frozen=True)
class AuditIdentity:
    """Everything the evidence depends on: models as (label, fingerprint), inputs as (name, hash).

    `own` are measures, theories and references of the user's, as (name, fingerprint). `groups` says which inputs belong
    together, as (name, group).
    """

    settings: AuditConventions
    models: tuple[tuple[str, str], ...]
    inputs: tuple[tuple[str, str], ...]
    own: tuple[tuple[str, str], ...]
    groups: tuple[tuple[str, str], ...] = ()
    kind: Literal[RunKind.AUDIT] = RunKind.AUDIT


@dataclass(frozen=True)
class AuditFile:
    """The `run.json` of an audit.

    `loading` says, by model, what was left out of its weights or filled in; `certificates` are the largest replay error
    of every layer, `attention` says what kind of it each layer has, such as "causal, rotary". `parts` hold rows, or
    summaries where `keep` says so.
    """

    format: int
    identity: AuditIdentity
    attnaudit: str
    versions: Mapping[str, str]
    weights: Mapping[str, str]
    loading: Mapping[str, tuple[str, ...]]
    parts: tuple[str, ...]
    certificates: Mapping[str, float]
    eigen_solvers: Mapping[str, int]
    attention: Mapping[str, str] = field(default_factory=dict)
    keep: Keep = added_later(Keep.ROWS)

    @property
    def kinds_of_attention(self) -> list[str]:
        """What kinds of attention the layers have, with their numbers; plain attention goes without saying."""
        counts = Counter(kind for kind in self.attention.values() if kind)
        return [f"{kind} ({counted(count, 'layer')})" for kind, count in counts.items()]


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


@dataclass(frozen=True)
class AuditRun:
    """A finished audit: `print(run)` shows the verdicts, `run.evidence` is a pyarrow table of all rows."""

    path: Path
    settings: AuditFile
    summary: AuditSummary
    heads: MeasuredHeads

    @property
    def rows(self) -> Evidence:
        """The rows, to be asked for some of them.

        Raises:
            RunFolderError: the run kept summaries only.
        """
        if not isinstance(self.heads, HeadRows):
            raise RunFolderError(
                f"{self.path} kept summaries and no rows, which this needs: repeat its command with --keep rows and "
                "--out another folder."
            )
        return self.heads.rows

    @cached_property
    def evidence(self) -> pa.Table:
        """All rows; read from the run folder when first asked for, while `rows` heads questions without that."""
        return self.rows.table()

    @property
    def name(self) -> str:
        """The name of the folder, without the path to it."""
        return self.path.resolve().name

    @property
    def models(self) -> list[str]:
        """The models that were audited, in order."""
        return list(self.summary.models)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What the evidence says of every claim, for every model."""
        return self.summary.verdicts

    @property
    def levels(self) -> dict[str, float]:
        """The confidence level of the intervals behind verdicts, by claim."""
        return dict(self.summary.levels)

    @property
    def ranking(self) -> tuple[Rank, ...]:
        """Theories compared, where there are several."""
        return self.summary.ranking

    @property
    def best_theories(self) -> tuple[BestTheory, ...]:
        """The theory that is closest to each head, where theories are compared and any is above chance."""
        return self.summary.best_theories

    @property
    def protocol(self) -> Protocol:
        """`exact` or `paper`."""
        return self.settings.identity.settings.protocol

    @property
    def seed(self) -> int:
        """Of every random choice."""
        return self.settings.identity.settings.seed

    @property
    def groups(self) -> dict[str, str]:
        """What inputs belong to, by name, where they are not independent."""
        return dict(self.settings.identity.groups)

    def statistic(self, model: str, measure: str, theory: str) -> Statistic:
        """One measure on the observed heads of a model, for one theory.

        Raises:
            RunFolderError: the summary does not have it.
        """
        first = self.settings.identity.settings.theories[:1]
        found = (
            self.summary.observed(model)
            if theory in first
            else self.summary.other_theories.get(model, {}).get(theory, {})
        )
        if measure not in found:
            raise RunFolderError(
                f"{RunFolder(self.path).summary_file} has no statistic of {measure} for {model} and the theory "
                f"{theory}, although there are rows of it: restore the file as it was, or repeat the command."
            )
        return found[measure]

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}({self.heads.words} in {self.path})"]
        for model in self.models:
            lines.append(f"  {model}")
            lines += [f"    {v.claim:<18}  {v.words:<26}  {v.reason}" for v in self.verdicts if v.model == model]
        return "\n".join(lines)


@dataclass(frozen=True)
class AuditedModel:
    """One model of an audit, on which claims about models are judged.

    `heads` know every head and reference, `observed` has the statistics of each measure.
    """

    model: str
    heads: MeasuredHeads
    observed: Statistics
    protocol: Protocol
    seed: int = 0


def open_audit(path: Path) -> AuditRun:
    """Open the folder of a finished audit.

    Raises:
        RunFolderError: it is not one, the audit is not finished, or a part of it is missing or damaged.
    """
    folder = RunFolder(path)
    settings = folder.settings(AuditFile, RunKind.AUDIT)
    summary = folder.summary(AuditSummary, "the summary of an audit")
    if settings.keep is Keep.SUMMARIES:
        return AuditRun(path, settings, summary, folder.parts.summaries_with_notes(settings.parts)[0])
    rows = folder.parts.evidence(settings.parts)
    return AuditRun(path, settings, summary, HeadRows(rows, dict(settings.identity.groups)))
