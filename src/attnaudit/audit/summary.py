"""From rows to statements: per model and measure mean, median, extremes, interval, counts and reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from attnaudit.audit.reduction import Reduction, reductions, with_intervals
from attnaudit.display import counted
from attnaudit.measures import Selection
from attnaudit.measures.cross_fits import fitted_measures
from attnaudit.measures.identifiability import IDENTIFIABLE, POSSIBLE
from attnaudit.records.audit import AuditSummary, CaptureSummary, MeasureWords, ReferenceWords, Statistic
from attnaudit.records.evidence import Evidence
from attnaudit.records.notes import Notes
from attnaudit.records.schema import OBSERVED
from attnaudit.theories.registry import PRIMAL_SVD

_COLUMNS = ("input", "reference", "value", "reason")


def summarise(evidence: Evidence, notes: Sequence[Notes], selection: Selection) -> AuditSummary:
    """The statistics of every model and measure, and certificate, refusals and skipped inputs of the whole run.

    References are summarised for the first theory, observed heads for all of them.
    """
    theory = selection.theories[0].name
    reduced = list(_reduced(evidence, theory))
    statistics = with_intervals([own for _, own in reduced], selection.seed)
    models: dict[str, dict[str, dict[str, Statistic]]] = {}
    others: dict[str, dict[str, dict[str, Statistic]]] = {}
    for (place, _), statistic in zip(reduced, statistics, strict=True):
        groups = models.setdefault(place.model, {})
        if place.theory == place.main_theory:
            groups.setdefault(place.reference, {})[place.measure] = statistic
        if place.theory != theory and place.reference == OBSERVED:
            others.setdefault(place.model, {}).setdefault(place.theory, {})[place.measure] = statistic
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


class _Place(NamedTuple):
    """Where a statistic belongs; all references of a measure are summarised for its main theory."""

    model: str
    measure: str
    theory: str
    main_theory: str
    reference: str


def _reduced(evidence: Evidence, first: str) -> Iterator[tuple[_Place, Reduction]]:
    """By model, measure, theory and reference, in order of their first rows."""
    theories: dict[tuple[str, str], list[str]] = {}
    for model, measure, theory in evidence.combinations("model", "measure", "theory"):
        theories.setdefault((model, measure), []).append(theory)
    for (model, measure), found in theories.items():
        # Measures of Primal-Attention have a theory of their own.
        main = first if first in found else PRIMAL_SVD.name
        for theory in found:
            asked = {} if theory == main else {"reference": OBSERVED}
            rows = evidence.where(*_COLUMNS, model=model, measure=measure, theory=theory, **asked)
            for reference, own in reductions(rows).items():
                yield _Place(model, measure, theory, main, reference), own


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


def _unique(groups: Iterable[Iterable[tuple[str, str]]]) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys(pair for group in groups for pair in group))
