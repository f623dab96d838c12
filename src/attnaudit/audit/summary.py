"""From rows to statements: per model and measure mean, median, extremes, interval, counts and reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from attnaudit.display import counted
from attnaudit.measures import Selection
from attnaudit.measures.cross_fits import fitted_measures
from attnaudit.measures.identifiability import IDENTIFIABLE, POSSIBLE
from attnaudit.records.audit import AuditSummary, CaptureSummary, MeasureWords, ReferenceWords, Statistic
from attnaudit.records.evidence import Evidence
from attnaudit.records.notes import Notes
from attnaudit.records.schema import OBSERVED
from attnaudit.statistics.huge import deviation, mean, median
from attnaudit.statistics.intervals import bootstrap_interval
from attnaudit.theories.registry import PRIMAL_SVD

Numbers = NDArray[np.float64]
_NO_REASON = "no reason given"


def summarise(evidence: Evidence, notes: Sequence[Notes], selection: Selection) -> AuditSummary:
    """The statistics of every model and measure, and certificate, refusals and skipped inputs of the whole run.

    References are summarised for the first theory, observed heads for all of them.
    """
    theory, seed = selection.theories[0].name, selection.seed
    models: dict[str, dict[str, dict[str, Statistic]]] = {}
    others: dict[str, dict[str, dict[str, Statistic]]] = {}
    for (model, measure), theories in _theories(evidence).items():
        groups = models.setdefault(model, {})
        # Measures of Primal-Attention have a theory of their own.
        main = theory if theory in theories else PRIMAL_SVD.name
        for own in theories:
            asked = {} if own == main else {"reference": OBSERVED}
            columns = ("input", "reference", "value", "reason")
            rows = evidence.where(*columns, model=model, measure=measure, theory=own, **asked)
            for reference in rows["reference"].unique().to_pylist():
                statistic = statistic_of(rows.filter(pc.equal(rows["reference"], reference)), seed)
                if own == main:
                    groups.setdefault(reference, {})[measure] = statistic
                if own != theory and reference == OBSERVED:
                    others.setdefault(model, {}).setdefault(own, {})[measure] = statistic
    measures = (*selection.measures, *fitted_measures(selection), IDENTIFIABLE, POSSIBLE)
    errors = [error for note in notes for error in note.certificate.values()]
    capture = CaptureSummary(max(errors, default=None), _unique(note.refusals for note in notes))
    return AuditSummary(
        models,
        others,
        capture,
        _unique(note.skipped for note in notes),
        {each.name: MeasureWords(each.text, each.closer, each.ideal) for each in measures},
        {each.name: ReferenceWords(each.text, each.role) for each in selection.references},
    )


def _theories(evidence: Evidence) -> dict[tuple[str, str], list[str]]:
    """By model and measure, in order of their first rows."""
    found: dict[tuple[str, str], list[str]] = {}
    for model, measure, theory in evidence.combinations("model", "measure", "theory"):
        found.setdefault((model, measure), []).append(theory)
    return found


def losses(summary: AuditSummary) -> list[str]:
    """What was left out of an audit, with reasons and numbers, a line each."""
    lines = [f"skipped input {name}: {reason}" for name, reason in summary.skipped_inputs]
    lines += [f"refused layer {layer}: {reason}" for layer, reason in summary.capture.refused_layers]
    rejected: dict[str, tuple[int, int]] = {}
    for model in summary.models:
        for name, statistic in summary.observed(model).items():
            for reason, count in statistic.rejected.items() if name != POSSIBLE.name else ():  # verdicts say that
                most, measures = rejected.get(reason, (0, 0))
                rejected[reason] = (max(most, count), measures + 1)
    return lines + [
        f"rejected: {counted(count, 'head')} in {counted(measures, 'measure')}, because {reason}"
        for reason, (count, measures) in rejected.items()
    ]


def statistic_of(rows: pa.Table, seed: int) -> Statistic:
    """Reduce the rows of one measure; inputs are the sampling unit of the interval and of `input_std`."""
    counted = pc.fill_null(pc.is_finite(rows["value"]), False)
    present = rows.filter(counted)
    reasons = Counter(reason or _NO_REASON for reason in rows.filter(pc.invert(counted))["reason"].to_pylist())
    values = present["value"].to_numpy()
    if not len(values):
        return Statistic(None, None, None, None, None, None, 0, dict(reasons))
    means = input_means(present)
    return Statistic(
        mean=mean(values),
        median=median(values),
        max=float(values.max()),
        min=float(values.min()),
        interval=bootstrap_interval(means, seed),
        input_std=deviation(means),
        n=len(values),
        rejected=dict(reasons),
    )


def input_means(rows: pa.Table) -> Numbers:
    """Mean over all heads of each input, in order of input name; by one thread, so that sums have the same order."""
    grouped = rows.select(["input", "value"]).group_by("input", use_threads=False).aggregate([("value", "mean")])
    order = np.argsort(np.array(grouped["input"].to_pylist()))
    means: Numbers = grouped["value_mean"].to_numpy()[order]
    if np.isfinite(means).all():
        return means
    names, values = np.array(rows["input"].to_pylist()), rows["value"].to_numpy()  # a sum was beyond float64
    return np.array([mean(values[names == name]) for name in np.unique(names)])


def _unique(groups: Iterable[Iterable[tuple[str, str]]]) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys(pair for group in groups for pair in group))
