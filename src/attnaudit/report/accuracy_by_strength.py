"""Accuracy of each attention variant over the strength of corruptions and attacks: numbers and figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor
from pathlib import Path

import numpy as np

from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation
from attnaudit.records.evaluation import ConditionKind, Quantity
from attnaudit.report.drawing import drawing, look
from attnaudit.robustness.network_groups import NetworkGroup, all_groups
from attnaudit.robustness.shared_conditions import SharedConditions, clean_accuracy
from attnaudit.statistics.intervals import CONFIDENCE, student_interval

_NAMES = {
    ConditionKind.CORRUPTION: "mean over corruptions, by severity",
    ConditionKind.NOISE: "mean over noises, by share of words",
    ConditionKind.ATTACK: "under the strongest attack, by ε",
}
#: Strengths in a line of the legend, the height of such a line, and how close they stand.
_LEGEND = 4
_LINE = 13  # points
_CLOSE = {"handletextpad": 0.1, "columnspacing": 1.0, "borderpad": 0.2}


@dataclass(frozen=True)
class StrengthRecord:
    """Mean accuracy of the networks of one attention variant at one strength: a severity, a rate, an ε, or 0 for clean.

    Accuracies are of so many `images`, or sentences. The interval is Student's t over seeds; None for a single seed.
    Of networks that segment the accuracy is the mIoU. `autoattack`: whether AutoAttack is among the attacks, None where
    there is none.
    """

    recipe: str
    kind: str
    strength: float
    images: int
    seeds: int
    accuracy: float
    low: float | None
    high: float | None
    quantity: str = Quantity.ACCURACY.words
    autoattack: bool | None = None


def strength_records(evaluations: Sequence[Evaluation]) -> list[StrengthRecord]:
    """By attention variant, kind and strength: the mean over corruptions or noises, the lowest over attacks."""
    return [
        record for group in all_groups(evaluations) for kind in _NAMES for record in _records(group, kind, evaluations)
    ]


def _records(group: NetworkGroup, kind: ConditionKind, evaluations: Sequence[Evaluation]) -> Iterator[StrengthRecord]:
    shared = SharedConditions.of([group], kind, evaluations)
    if shared is None:
        return
    accuracy = shared.attacked if kind is ConditionKind.ATTACK else shared.averaged

    def at(network: EvaluatedNetwork, strength: float) -> float:
        return accuracy(network, strength) if strength else clean_accuracy(network)

    words = group.quantity.words
    for strength in sorted({0.0, *shared.strengths}):
        values = np.array([at(network, strength) for network in shared.networks[0]])
        low, high = student_interval(values, CONFIDENCE, shared.coarseness / 2**0.5) or (None, None)
        strongest = shared.by_autoattack(strength) if strength and kind is ConditionKind.ATTACK else None
        known = (group.name, kind.value, strength, shared.images, len(values))
        yield StrengthRecord(*known, float(values.mean()), low, high, words, strongest)


def strength_figure(records: Sequence[StrengthRecord], paths: Sequence[Path]) -> None:
    """A panel per kind and a row per recipe: a dot for every strength, with its interval over seeds, on one scale.

    The dots of a strength stand below one another, as far as recipes agree. Where only some networks were under
    AutoAttack, the dots of the others are hollow.
    """
    recipes = list(dict.fromkeys(record.recipe for record in records))
    kinds = [kind for kind in _NAMES if any(record.kind == kind for record in records)]
    with drawing(paths, 1, len(kinds), (1.2 + 2.9 * len(kinds), 1.2 + 0.17 * len(recipes))) as axes:
        for place, (axis, kind) in enumerate(zip(axes[0], kinds, strict=True)):
            own = [record for record in records if record.kind == kind]
            words = " or ".join(dict.fromkeys(record.quantity for record in own))
            hollow = False
            for number, strength in enumerate(sorted({record.strength for record in own})):
                column = [record for record in own if record.strength == strength]
                colour = look(number)["color"]
                mixed = len({record.autoattack for record in column}) > 1
                axis.plot([], color=colour, marker="o", ms=3, ls="", label=_strength(kind, strength))
                for record in column:
                    row = recipes.index(record.recipe)
                    if record.low is not None and record.high is not None:
                        axis.plot([100 * record.low, 100 * record.high], [row, row], color=colour, lw=0.8)
                    fill = "white" if mixed and not record.autoattack else colour
                    axis.plot(100 * record.accuracy, row, color=colour, marker="o", ms=3, mfc=fill, ls="")
                hollow |= mixed
            axis.set_yticks(range(len(recipes)), recipes if place == 0 else [""] * len(recipes))
            axis.set(xlim=_limits(records), ylim=(len(recipes) - 0.5, -0.5), xlabel=f"{words} in %, mean over seeds")
            axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=_LEGEND, **_CLOSE)
            title = [_NAMES[kind], _inputs(own) + "; hollow: without AutoAttack" * hollow]
            axis.set_title("\n".join(title), pad=6 + _LINE * ceil(len(axis.get_legend_handles_labels()[1]) / _LEGEND))
            axis.grid(axis="y", color="0.9", lw=0.5)
            axis.set_axisbelow(True)
            axis.tick_params(axis="y", length=0)


def _inputs(records: Sequence[StrengthRecord]) -> str:
    """How many there are: panels of corruptions and of attacks may be of different evaluations."""
    fewest, most = (limit(record.images for record in records) for limit in (min, max))
    return f"{fewest:,} inputs" if fewest == most else f"{fewest:,} to {most:,} inputs"


def _limits(records: Sequence[StrengthRecord]) -> tuple[float, float]:
    """All intervals, and the tens around them."""
    ends = [100 * end for own in records for end in (own.accuracy, own.low, own.high) if end is not None]
    return max(0.0, 10.0 * floor(min(ends) / 10)), min(100.0, 10.0 * ceil(max(ends) / 10))


def _strength(kind: ConditionKind, strength: float) -> str:
    if not strength:
        return "clean"
    return f"{255 * strength:.3g}/255" if kind is ConditionKind.ATTACK else f"{strength:g}"
