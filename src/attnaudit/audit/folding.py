"""HeadSummaries in place of rows: as soon as a model is measured, its rows are summarised and removed.

Not sooner, because a row says little by itself. A score compares what different units measure of the same head and
input: best projections and fitted theories need all inputs before the first of their rows exists. So the parts of a
model come as they come, from any number of workers, and are folded once, in the order of the plan: the bytes of the
result do not depend on who finished first, or how often the run was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

import pyarrow as pa

from attnaudit.audit.plan import AuditPlan
from attnaudit.audit.summary import PlacedStatistic, statistics
from attnaudit.measures import REFERENCES, Measure, Reference, Selection, measure_named
from attnaudit.measures.references.registry import with_nulls_of
from attnaudit.records.audit_summary import Statistic
from attnaudit.records.evidence import Evidence
from attnaudit.records.grouped_rows import Group
from attnaudit.records.head_rows import HeadRows
from attnaudit.records.head_summaries import summarised
from attnaudit.records.head_values import HeadTable
from attnaudit.records.notes import Notes
from attnaudit.records.parts import encode_part
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.schema import IDENTIFIABLE, OBSERVED, POSSIBLE, SCHEMA, Role
from attnaudit.records.scored_heads import ScoredHeads
from attnaudit.records.summary_rows import SUMMARY_SCHEMA, Entry, SummaryRows
from attnaudit.statistics.scored_heads import scored_heads
from attnaudit.theories.base import Theory
from attnaudit.theories.registry import THEORIES

_MARKS = (IDENTIFIABLE, POSSIBLE)
#: What the page shows of every head, beside itself: the first reference of each role that has numbers.
_BY_HEAD = (Role.NULL, Role.IDEAL, Role.CEILING)
_NUMBERS = ("mean", "median", "max", "min", "input_std", "n")


class Folding:
    """Folds the parts of every model of a plan into one with its summaries; a crash at any point loses neither."""

    def __init__(self, plan: AuditPlan) -> None:
        self._plan = plan
        self._waiting: dict[str, set[str]] = {}
        self._key_of = {unit: key for key, units in plan.summary_parts.items() for unit in units}

    def settled(self, folder: RunFolder) -> Collection[str]:
        """The units of models that need nothing any more, after those that have all their parts are folded."""
        found: set[str] = set()
        for key, units in self._plan.summary_parts.items():
            if folder.parts.missing([key], SUMMARY_SCHEMA):
                self._waiting[key] = {*folder.parts.missing(units, SCHEMA)}
                if self._waiting[key]:
                    continue
                self._fold(folder, key)
            folder.parts.remove(units)  # what a crash left behind
            found.update(units)
        return found

    def stored(self, folder: RunFolder, unit: str) -> None:
        """Take a new part into account: the last one of a model makes its summaries."""
        key = self._key_of[unit]
        self._waiting[key].discard(unit)
        if not self._waiting[key]:
            self._fold(folder, key)
            folder.parts.remove(self._plan.summary_parts[key])

    def _fold(self, folder: RunFolder, key: str) -> None:
        rows, notes = folder.parts.evidence_with_notes(self._plan.summary_parts[key])
        table = fold(rows, self._plan.selection, self._plan.groups)
        folder.parts.write(key, encode_part(key, table, Notes.merged(notes)))


def fold(rows: Evidence, selection: Selection, groups: Mapping[str, str]) -> pa.Table:
    """All that verdicts and pages need of these rows."""
    heads, scoring, found = HeadRows(rows, groups), _Scoring(selection), SummaryRows()
    by_role = [[each.name for each in selection.references if each.role is role] for role in _BY_HEAD]
    drawn = [OBSERVED, *(each.name for each in selection.references if each.role is not Role.SENSITIVITY)]
    for group in heads.measured():
        shown = (by_role, drawn) if scoring.has_direction(group) else ((), ())
        found.groups.update(summarised(heads, group, scoring.of(group), *shown).groups)
    for place in statistics(rows, selection, groups):
        _add_statistic(found, place)
    return found.table()


class _Scoring:
    """How heads are scored, by measure and theory."""

    def __init__(self, selection: Selection) -> None:
        own = selection.own
        self._measures = {each.name: each for each in own if isinstance(each, Measure)}
        self._references = {**{each.name: each for each in own if isinstance(each, Reference)}, **REFERENCES}
        self._theories = {**{each.name: each for each in own if isinstance(each, Theory)}, **THEORIES}

    def of(self, group: Group) -> Callable[[HeadTable], ScoredHeads]:
        """As verdicts score them; marks have no score."""
        if group.measure in _MARKS:
            return lambda table: ScoredHeads(impossible=table.impossible)
        measure = self._measure(group)
        references = with_nulls_of(self._theories.get(group.theory), self._references)
        return partial(scored_heads, measure=measure, references=references)

    def has_direction(self, group: Group) -> bool:
        """Whether a verdict can depend on the measure: then pages show its references."""
        return group.measure not in _MARKS and self._measure(group).closer != "neither"

    def _measure(self, group: Group) -> Measure:
        return self._measures.get(group.measure) or measure_named(group.measure)


def _add_statistic(rows: SummaryRows, place: PlacedStatistic) -> None:
    group, reference, statistic = place
    for name in _NUMBERS:
        if (number := getattr(statistic, name)) is not None:
            rows.add(group, f"statistic.{name}", Entry(number, reference))
    for end, number in zip(("low", "high"), statistic.interval or (), strict=False):
        rows.add(group, f"statistic.{end}", Entry(number, reference))
    for reason, count in statistic.rejected.items():
        rows.add(group, "statistic.rejected", Entry(count, reference, text=reason))


def kept_statistics(rows: SummaryRows) -> Iterator[PlacedStatistic]:
    """The statistics of all models, as the rows had them."""
    for group in rows.groups:
        numbers = {
            name: {own.reference: own.value for own in rows.of(group, f"statistic.{name}")}
            for name in (*_NUMBERS, "low", "high")
        }
        lost = rows.of(group, "statistic.rejected")
        for reference, count in numbers.pop("n").items():
            own = {name: values.get(reference) for name, values in numbers.items()}
            low, high = own.pop("low"), own.pop("high")
            interval = None if low is None or high is None else (low, high)
            rejected = {str(each.text): int(each.value) for each in lost if each.reference == reference}
            statistic = Statistic(**own, interval=interval, n=int(count), rejected=rejected)
            yield PlacedStatistic(group, str(reference), statistic)
