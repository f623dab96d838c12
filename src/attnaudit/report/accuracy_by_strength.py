"""Accuracy of each attention variant over the strength of corruptions and attacks: numbers and figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation
from attnaudit.records.evaluation import ConditionKind
from attnaudit.report.drawing import drawing, look
from attnaudit.robustness.network_groups import NetworkGroup, named_groups
from attnaudit.robustness.shared_conditions import SharedConditions, clean_accuracy
from attnaudit.statistics.intervals import CONFIDENCE, student_interval

_NAMES = {
    ConditionKind.CORRUPTION: ("mean over corruptions", "severity"),
    ConditionKind.ATTACK: ("under the strongest attack", "255 ε"),
}
#: Columns of the legend; few, because the names of recipes are long.
_COLUMNS = 3


@dataclass(frozen=True)
class StrengthRecord:
    """Mean accuracy of the networks of one attention variant at one strength: a severity, an ε, or 0 for clean images.

    The interval is Student's t over seeds; None for a single seed.
    """

    recipe: str
    kind: str
    strength: float
    seeds: int
    accuracy: float
    low: float | None
    high: float | None


def strength_records(evaluations: Sequence[Evaluation]) -> list[StrengthRecord]:
    """By attention variant, kind and strength: the mean over corruptions, and the lowest accuracy over attacks."""
    return [
        record
        for name, group in named_groups(evaluations)
        for kind in (ConditionKind.CORRUPTION, ConditionKind.ATTACK)
        for record in _records(name, group, kind, evaluations)
    ]


def _records(
    name: str, group: NetworkGroup, kind: ConditionKind, evaluations: Sequence[Evaluation]
) -> Iterator[StrengthRecord]:
    shared = SharedConditions.of([group], kind, evaluations)
    if shared is None:
        return
    accuracy = shared.corrupted if kind is ConditionKind.CORRUPTION else shared.attacked

    def at(network: EvaluatedNetwork, strength: float) -> float:
        return accuracy(network, strength) if strength else clean_accuracy(network)

    for strength in sorted({0.0, *shared.strengths}):
        values = np.array([at(network, strength) for network in shared.networks[0]])
        low, high = student_interval(values, CONFIDENCE, shared.coarseness / 2**0.5) or (None, None)
        yield StrengthRecord(name, kind.value, strength, len(values), float(values.mean()), low, high)


def strength_figure(records: Sequence[StrengthRecord], paths: Sequence[Path]) -> None:
    """A panel per kind, a line per recipe, with the interval over seeds as a bar at every point."""
    recipes = list(dict.fromkeys(record.recipe for record in records))
    kinds = [kind for kind in _NAMES if any(record.kind == kind for record in records)]
    with drawing(paths, 1, len(kinds), (3.4 * len(kinds), 2.4 + 0.14 * -(-len(recipes) // _COLUMNS))) as axes:
        for axis, kind in zip(axes[0], kinds, strict=True):
            unit = 255 if kind is ConditionKind.ATTACK else 1
            for place, recipe in enumerate(recipes):
                own = [record for record in records if (record.recipe, record.kind) == (recipe, kind)]
                at = [unit * record.strength for record in own]
                axis.plot(
                    at, [100 * record.accuracy for record in own], marker="o", ms=2.5, label=recipe, **look(place)
                )
                for x, record in zip(at, own, strict=True):
                    if record.low is not None and record.high is not None:
                        axis.plot([x, x], [100 * record.low, 100 * record.high], color=look(place)["color"], lw=0.6)
            title, label = _NAMES[kind]
            axis.set(title=title, xlabel=label, ylim=(0, 100))
        axes[0, 0].set_ylabel("accuracy in %, mean over seeds")
        labelled = axes[0, 0].get_legend_handles_labels()  # every panel has every recipe, even if its line is empty
        axes[0, 0].figure.legend(*labelled, loc="outside upper center", ncols=_COLUMNS)
