"""The tables of a robustness experiment in Markdown, from the folders of its evaluations.

    python -m benchmarks.robustness_tables docs/results/robustness/evaluations/*

Accuracies in per cent, then points over symmetric attention, paired by seed; the same numbers are in the gains.csv of
`attnaudit judge --out`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from attnaudit.records.evaluated_networks import open_evaluations
from attnaudit.report.seed_gains import GainRecord, conditions_of, gain_records
from attnaudit.robustness.gains import end_in_points, mean_in_points


def tables(records: Sequence[GainRecord]) -> str:
    """A line per recipe and a column per condition: means over seeds with Student's interval."""
    conditions = conditions_of(records)
    images = {own.condition: f"{own.condition} ({own.images:,})" if own.images else own.condition for own in records}
    names = ["", "seeds", *(images[condition] for condition in conditions)]
    lines = ["In per cent, mean over seeds [95 %, Student's t]; in brackets, how many images:", "", *heading(names)]
    for recipe, own in _by_recipe(records).items():
        cells = [_cell(own.get(condition), gain=False) for condition in conditions]
        lines.append(f"| {recipe} | {_seeds(own)} | {' | '.join(cells)} |")
    lines += ["", "Points over symmetric attention, paired by seed [95 %, Student's t]:", "", *heading(names)]
    for recipe, own in _by_recipe([record for record in records if record.gain is not None]).items():
        cells = [_cell(own.get(condition), gain=True) for condition in conditions]
        lines.append(f"| {recipe} | {_seeds(own)} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _by_recipe(records: Sequence[GainRecord]) -> dict[str, dict[str, GainRecord]]:
    found: dict[str, dict[str, GainRecord]] = {}
    for record in records:
        found.setdefault(record.recipe, {})[record.condition] = record
    return found


def _seeds(own: dict[str, GainRecord]) -> str:
    """One number, or the least and the most."""
    counts = sorted({record.seeds for record in own.values()})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"


def _cell(record: GainRecord | None, *, gain: bool) -> str:
    if record is None:
        return "–"
    mean, low, high = (
        (record.gain, record.gain_low, record.gain_high) if gain else (record.accuracy, record.low, record.high)
    )
    middle, end = (mean_in_points, end_in_points) if gain else (_per_cent, _per_cent)
    ends = "" if low is None or high is None else f" [{end(low)}, {end(high)}]"
    return f"{middle(mean or 0.0)}{ends}".replace("-", "−")


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f}"


def heading(names: Sequence[str]) -> list[str]:
    """The first two lines of a table in Markdown."""
    return [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]


if __name__ == "__main__":
    print(tables(gain_records(open_evaluations([Path(name) for name in sys.argv[1:]]))), end="")
