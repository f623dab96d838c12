"""From rows to statements: per model and measure mean, median, extremes, interval, counts and reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from attnaudit.records.evidence import Evidence
from attnaudit.records.notes import Notes
from attnaudit.records.schema import OBSERVED
from attnaudit.statistics.intervals import bootstrap_interval
from attnaudit.theories.registry import PRIMAL_SVD

Numbers = NDArray[np.float64]


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
    rejected: dict[str, int]


def summarise(evidence: Evidence, notes: Sequence[Notes], theory: str, seed: int) -> dict[str, Any]:
    """Per model: every measure's `Statistic`, per reference; and for the whole run certificate, refusals and skips.

    Measures against a prediction are those of the first `theory`; the others are in the evidence, and in the ranking.
    """
    models: dict[str, Any] = {}
    for model, measure in evidence.combinations("model", "measure"):
        columns = ("input", "reference", "value", "reason")
        rows = evidence.where(*columns, model=model, measure=measure, theory=theory)
        if not rows.num_rows:  # of Primal-Attention, which has a theory of its own
            rows = evidence.where(*columns, model=model, measure=measure, theory=PRIMAL_SVD.name)
        for reference in rows["reference"].unique().to_pylist():
            statistic = statistic_of(rows.filter(pc.equal(rows["reference"], reference)), seed)
            models.setdefault(model, {}).setdefault(reference, {})[measure] = asdict(statistic)
    errors = [error for note in notes for error in note.certificate.values()]
    return {
        "models": models,
        "capture": {
            "replay_error": max(errors, default=None),
            "refused_layers": _unique(note.refusals for note in notes),
        },
        "skipped_inputs": _unique(note.skipped for note in notes),
    }


def losses(summary: Mapping[str, Any]) -> list[str]:
    """What was left out of an audit, with reasons and numbers, a line each."""
    lines = [f"skipped input {name}: {reason}" for name, reason in summary["skipped_inputs"]]
    lines += [f"refused layer {layer}: {reason}" for layer, reason in summary["capture"]["refused_layers"]]
    rejected: dict[str, tuple[int, int]] = {}
    for references in summary["models"].values():
        for statistic in references.get(OBSERVED, {}).values():
            for reason, count in statistic["rejected"].items():
                most, measures = rejected.get(reason, (0, 0))
                rejected[reason] = (max(most, count), measures + 1)
    return lines + [
        f"rejected: {count:,} heads in {measures} measures, because {reason}"
        for reason, (count, measures) in rejected.items()
    ]


def statistic_of(rows: pa.Table, seed: int) -> Statistic:
    """Reduce the rows of one measure; inputs are the sampling unit of the interval and of `input_std`."""
    present = rows.filter(pc.is_valid(rows["value"]))
    reasons = Counter(rows.filter(pc.is_null(rows["value"]))["reason"].to_pylist())
    values = present["value"].to_numpy()
    if not len(values):
        return Statistic(None, None, None, None, None, None, 0, dict(reasons))
    means = input_means(present)
    return Statistic(
        mean=float(values.mean()),
        median=float(np.median(values)),
        max=float(values.max()),
        min=float(values.min()),
        interval=bootstrap_interval(means, seed),
        input_std=float(means.std(ddof=1)) if len(means) > 1 else None,
        n=len(values),
        rejected=dict(reasons),
    )


def input_means(rows: pa.Table) -> Numbers:
    """Mean over all heads of each input, in order of input name."""
    grouped = rows.select(["input", "value"]).group_by("input").aggregate([("value", "mean")])
    order = np.argsort(np.array(grouped["input"].to_pylist()))
    means: Numbers = grouped["value_mean"].to_numpy()[order]
    return means


def _unique(groups: Any) -> list[list[str]]:
    return [list(pair) for pair in dict.fromkeys(pair for group in groups for pair in group)]
