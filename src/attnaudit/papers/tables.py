"""The study's tables as something to repeat: what to measure, how it is aggregated, and the published row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attnaudit.audit.settings import AuditSettings
from attnaudit.papers.published_tables import SAME_MODEL, TABLE1, TABLE2, TABLE3_RAW, TABLE4, Row, Value
from attnaudit.protocol import Protocol
from attnaudit.records.audit_summary import AuditSummary, Statistic, Statistics


@dataclass(frozen=True)
class Column:
    """One published quantity: a measure, how it is reduced over heads, and its unit.

    Reductions: `mean` and `max` over the heads that could be computed, or `mean with zeros`, which counts the others as
    0, as the study's language script does when it matches tokens.
    """

    name: str
    measure: str
    reduction: str
    published: Mapping[str, Row]
    key: str
    unit: float = 1.0
    decimals: int = 2


@dataclass(frozen=True)
class Table:
    """A table of the study: its caption, how many images or sentences it used, what is measured, and its columns."""

    caption: str
    inputs: int
    measures: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Models with a published row, in order."""
        return tuple(dict.fromkeys(model for column in self.columns for model in column.published))


@dataclass(frozen=True)
class Comparison:
    """A published number beside ours, in the table's unit."""

    model: str
    column: str
    published: Value
    ours: float | None
    ours_std: float | None
    decimals: int
    heads: int
    rejected: int

    @property
    def difference(self) -> float | None:
        """Ours less published."""
        return None if self.ours is None or self.published is None else self.ours - self.published[0]


def _eigenvalues(prefix: str, suffix: str, published: Mapping[str, Row]) -> tuple[Column, ...]:
    return tuple(
        Column(f"{s}{suffix} ×1e-6", f"{prefix}eigenvalue_{s}", "mean", published, s, unit=1e-6, decimals=0)
        for s in ("max", "min", "mean", "median")
    )


def _measures(columns: tuple[Column, ...]) -> tuple[str, ...]:
    return tuple(column.measure for column in columns)


_COSINES = ("direct_cosine_mean", "direct_cosine_max", "matched_cosine_mean", "matched_cosine_max")
_ALIGNMENTS = ("linear_cka", "linear_cka_debiased", "kernel_cka")
_STANDARDISED = _eigenvalues("standardised_", "", TABLE2)
_RAW = _eigenvalues("", "*", TABLE3_RAW)

TABLES: Mapping[str, Table] = {
    "table1": Table(
        "Table 1: similarity of values and kernel-PCA values (MDC and MOC: maximum over heads; CKA: mean)",
        100,
        (*_COSINES, *_ALIGNMENTS, "allclose"),
        (
            Column("MDC", "direct_cosine_mean", "max", TABLE1, "MDC"),
            Column("MOC", "matched_cosine_mean", "max", TABLE1, "MOC"),
            Column("LCKA", "linear_cka", "mean", TABLE1, "LCKA"),
            Column("KCKA", "kernel_cka", "mean", TABLE1, "KCKA"),
        ),
    ),
    "table2": Table(
        "Table 2: eigenvalues of K̃, keys standardised per token (mean ± deviation over images)",
        25,
        _measures(_STANDARDISED),
        _STANDARDISED,
    ),
    "table3": Table(
        "Table 3: eigenvalues of K̃, keys standardised or raw (*)",
        25,
        _measures(_STANDARDISED + _RAW),
        _STANDARDISED + _RAW,
    ),
    "table4": Table(
        "Table 4: language encoders (MDC and MOC: mean over heads of the best token or matched pair)",
        100,
        (*_COSINES, *_ALIGNMENTS),
        (
            Column("MDC", "direct_cosine_max", "mean", TABLE4, "MDC"),
            Column("MOC", "matched_cosine_max", "mean with zeros", TABLE4, "MOC"),
            Column("LCKA", "linear_cka", "mean", TABLE4, "LCKA"),
            Column("KCKA", "kernel_cka", "mean", TABLE4, "KCKA"),
        ),
    ),
}


def compare(table: Table, model: str, observed: Statistics) -> list[Comparison]:
    """Our row of a table beside the published one, from the statistics of a model's own heads."""
    name = model.partition(" ")[0]
    comparisons = []
    for column in table.columns:
        statistic = observed[column.measure]
        ours, std = _reduced(statistic, column.reduction), statistic.input_std
        published = column.published.get(SAME_MODEL.get(name, name), column.published.get(name.partition(".")[0], {}))
        comparisons.append(
            Comparison(
                model=model,
                column=column.name,
                published=published.get(column.key),
                ours=None if ours is None else ours / column.unit,
                ours_std=std / column.unit if column.reduction == "mean" and std is not None else None,
                decimals=column.decimals,
                heads=statistic.n,
                rejected=statistic.lost,
            )
        )
    return comparisons


def compare_models(table: Table, summary: AuditSummary) -> list[Comparison]:
    """The same for every model of a run."""
    return [entry for model in summary.models for entry in compare(table, model, summary.observed(model))]


def allclose_tests(summary: AuditSummary) -> dict[str, tuple[int, int]]:
    """By model, how many of its allclose tests pass, and of how many; empty if there are none."""
    found = {model: summary.observed(model).get("allclose") for model in summary.models}
    return {model: (round((close.mean or 0) * close.n), close.n) for model, close in found.items() if close is not None}


def table_settings(table: Table, *, seed: int, device: str) -> AuditSettings:
    """How the study computes a table: under its protocol, and without references."""
    return AuditSettings(protocol=Protocol.PAPER, measures=table.measures, seed=seed, device=device)


def _reduced(statistic: Statistic, reduction: str) -> float | None:
    if statistic.mean is None:
        return None
    if reduction == "mean with zeros":
        return statistic.mean * statistic.n / (statistic.n + statistic.lost)
    return statistic.max if reduction == "max" else statistic.mean
