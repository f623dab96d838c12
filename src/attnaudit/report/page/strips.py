"""Strip plots: the observed heads and their references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attnaudit.records.audit_summary import MeasureWords, ReferenceWords
from attnaudit.records.grouped_rows import Group
from attnaudit.records.measured_heads import Distribution, MeasuredHeads
from attnaudit.report.page.numbers import compact, compacted
from attnaudit.report.references import reference_kinds

POINTS = 200


@dataclass(frozen=True)
class StripRow:
    """One reference: its mean over `counted` values, and points at evenly spaced ranks, to show its distribution.

    There is a value for each head and input. `inputs` is the number of inputs that it was measured on, and `missing`
    counts the values that could not be computed there.
    """

    reference: str
    kind: str
    counted: int
    missing: int
    inputs: int
    mean: float | None
    points: list[float]


@dataclass(frozen=True)
class Strip:
    """One measure for one theory, on so many heads; `closer` says which values are closer to the theory.

    `unidentifiable` counts the values of heads that cannot decide and are left out.
    """

    measure: str
    theory: str
    decides: bool
    closer: str
    heads: int
    unidentifiable: int
    rows: list[StripRow]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(row.points for row in self.rows)


def strip(
    heads: MeasuredHeads,
    group: Group,
    decides: bool,
    words: MeasureWords,
    references: Mapping[str, ReferenceWords],
) -> Strip:
    """A strip with a row per reference, the observed heads first, then nulls, ideals, ceilings and others."""
    found = heads.distributions(group)
    kinds = reference_kinds(references)
    rows = [_row(name, kind, found.references[name]) for name, kind in kinds.items() if name in found.references]
    return Strip(group.measure, group.theory, decides, words.closer, found.heads, found.unidentifiable, rows)


def _row(reference: str, kind: str, found: Distribution) -> StripRow:
    mean = None if found.mean is None else compact(found.mean)
    points = compacted(found.evenly_ranked(POINTS))
    return StripRow(reference, kind, found.counted, found.missing, found.inputs, mean, points)
