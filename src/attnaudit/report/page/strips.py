"""Strip plots: the observed heads and their references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnaudit.records.audit import MeasureWords, ReferenceWords
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.head_values import HeadTable
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
    evidence: Evidence,
    model: str,
    measure: str,
    theory: str,
    decides: bool,
    words: MeasureWords,
    references: Mapping[str, ReferenceWords],
) -> Strip:
    """A strip with a row per reference, the observed heads first, then nulls, ideals, ceilings and others."""
    table = head_table(evidence, model, measure, theory)
    kinds = reference_kinds(references)
    found = table.references if len(table) else {}
    rows = [_row(name, kind, table) for name, kind in kinds.items() if name in found]
    heads = len(np.unique(table.heads))
    return Strip(measure, theory, decides, words.closer, heads, table.unidentifiable, rows)


def _row(reference: str, kind: str, table: HeadTable) -> StripRow:
    values, inputs = table.references[reference], table.inputs_of(reference)
    finite = np.sort(values[np.isfinite(values)])
    mean = compact(float(finite.mean())) if len(finite) else None
    expected = int(np.isin(table.inputs, inputs).sum()) or len(values)
    points = compacted(evenly_ranked(finite, POINTS))
    return StripRow(reference, kind, len(finite), expected - len(finite), len(inputs), mean, points)


def evenly_ranked(ordered: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """At most `number` of the sorted values, including the smallest and the largest."""
    if len(ordered) <= number:
        return ordered
    chosen: NDArray[np.float64] = ordered[np.linspace(0, len(ordered) - 1, number).round().astype(int)]
    return chosen
