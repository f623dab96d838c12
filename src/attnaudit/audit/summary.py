"""From rows to statements: per model and measure mean, median, extremes, interval, counts and reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from attnaudit.audit.reduction import Reduction, reductions, with_intervals
from attnaudit.display import counted
from attnaudit.measures import Selection
from attnaudit.measures.cross_fits import fitted_measures
from attnaudit.measures.identifiability import IDENTIFIABLE, POSSIBLE
from attnaudit.records.audit_summary import AuditSummary, CaptureSummary, MeasureWords, ReferenceWords, Statistic
from attnaudit.records.evidence import Evidence
from attnaudit.records.grouped_rows import Group
from attnaudit.records.notes import Notes
from attnaudit.records.schema import OBSERVED
from attnaudit.theories.registry import PRIMAL_SVD

_COLUMNS = ("input", "reference", "value", "reason")


class PlacedStatistic(NamedTuple):
    """What a statistic is of."""

    group: Group
    reference: str
    statistic: Statistic


def statistics(evidence: Evidence, selection: Selection, groups: Mapping[str, str]) -> list[PlacedStatistic]:
    """Of every model, measure, theory and reference; references are summarised for the main theory of a measure.

    Inputs that belong together by `groups` count as one in deviations and intervals.
    """
    reduced = list(_reduced(evidence, selection, groups))
    found = with_intervals([own for _, _, own in reduced], selection.seed)
    return [PlacedStatistic(group, name, own) for (group, name, _), own in zip(reduced, found, strict=True)]


def summarise(found: Iterable[PlacedStatistic], notes: Notes, selection: Selection) -> AuditSummary:
    """The statistics of every model and measure, and certificate, refusals and skipped inputs of the whole run.

    References are summarised for the first theory, observed heads for all of them.
    """
    theory, placed = selection.theories[0].name, list(found)
    main = _main_theories((group for group, _, _ in placed), selection)
    order = {place: number for number, place in enumerate(main)}
    placed.sort(key=lambda own: order[own.group.model, own.group.measure])
    models: dict[str, dict[str, dict[str, Statistic]]] = {}
    others: dict[str, dict[str, dict[str, Statistic]]] = {}
    for group, reference, statistic in placed:
        groups = models.setdefault(group.model, {})
        if group.theory == main[group.model, group.measure]:
            groups.setdefault(reference, {})[group.measure] = statistic
        if group.theory != theory and reference == OBSERVED:
            others.setdefault(group.model, {}).setdefault(group.theory, {})[group.measure] = statistic
    measures = (*selection.measures, *fitted_measures(selection), IDENTIFIABLE, POSSIBLE)
    capture = CaptureSummary(max(notes.certificate.values(), default=None), notes.refusals)
    return AuditSummary(
        models,
        others,
        capture,
        notes.skipped,
        {each.name: MeasureWords(each.text, each.closer, each.ideal) for each in measures},
        {each.name: ReferenceWords(each.text, each.role) for each in selection.references},
    )


def _reduced(
    evidence: Evidence, selection: Selection, groups: Mapping[str, str]
) -> Iterator[tuple[Group, str, Reduction]]:
    """By model, measure, theory and reference, in order of their first rows."""
    measured = [Group(*names) for names in evidence.combinations(*Group._fields)]
    main = _main_theories(measured, selection)
    for model, measure in main:
        for group in (own for own in measured if (own.model, own.measure) == (model, measure)):
            asked = {} if group.theory == main[model, measure] else {"reference": OBSERVED}
            rows = evidence.where(*_COLUMNS, **group._asdict(), **asked)
            for reference, own in reductions(rows, groups).items():
                yield group, reference, own


def _main_theories(groups: Iterable[Group], selection: Selection) -> dict[tuple[str, str], str]:
    """The theory for which all references of a measure are summarised, by model and measure."""
    theories: dict[tuple[str, str], list[str]] = {}
    for group in groups:
        theories.setdefault((group.model, group.measure), []).append(group.theory)
    first = selection.theories[0].name
    # Measures of Primal-Attention have a theory of their own.
    return {place: first if first in found else PRIMAL_SVD.name for place, found in theories.items()}


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
