"""Strip plots: the observed heads and their references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnaudit.records.audit import ReferenceWords
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.head_values import HeadTable
from attnaudit.report.page.numbers import compact, compacted
from attnaudit.report.references import reference_kinds

POINTS = 200


@dataclass(frozen=True)
class StripRow:
    """One reference: its mean over `counted` heads, and points at evenly spaced ranks, to show its distribution.

    `inputs` is the number of inputs that it was measured on, and `missing` counts the heads without a number there.
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
    """One measure for one theory; `unidentifiable` heads cannot decide and are left out."""

    measure: str
    theory: str
    decides: bool
    unidentifiable: int
    rows: list[StripRow]


def strip(
    evidence: Evidence,
    model: str,
    measure: str,
    theory: str,
    decides: bool,
    references: Mapping[str, ReferenceWords],
) -> Strip:
    """A strip with a row per reference, the observed heads first, then nulls, ideals, ceilings and others."""
    table = head_table(evidence, model, measure, theory)
    kinds = reference_kinds(references)
    found = table.references if len(table) else {}
    rows = [_row(name, kind, table) for name, kind in kinds.items() if name in found]
    return Strip(measure, theory, decides, table.unidentifiable, rows)


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
