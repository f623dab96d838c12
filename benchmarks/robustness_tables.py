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
    form = "+.2f" if gain else ".1f"
    ends = "" if low is None or high is None else f" [{_number(low, form)}, {_number(high, form)}]"
    return f"{_number(mean or 0.0, form)}{ends}"


def _number(share: float, form: str) -> str:
    text = format(100 * share, form)
    return text.replace("-0.00", "+0.00").replace("-", "−") if form[0] == "+" else text


def heading(names: Sequence[str]) -> list[str]:
    """The first two lines of a table in Markdown."""
    return [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]


if __name__ == "__main__":
    print(tables(gain_records(open_evaluations([Path(name) for name in sys.argv[1:]]))), end="")
