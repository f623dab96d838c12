"""Accuracy of each attention variant, and its gain over symmetric attention: numbers and figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation
from attnaudit.records.evaluation import ConditionKind, Quantity
from attnaudit.report.drawing import BLUE, drawing
from attnaudit.robustness.network_groups import NetworkGroup, all_groups
from attnaudit.robustness.shared_conditions import AVERAGED, SharedConditions, clean_accuracy
from attnaudit.statistics.intervals import CONFIDENCE, student_interval

#: An interval that is this many times as wide as the median one does not determine the scale of a figure.
_FAR = 4
#: In inches, for the line below the panels.
_LEAST_WIDTH = 5.2
#: What tells networks under AutoAttack from those without.
_STRONGEST = ", AutoAttack included"


@dataclass(frozen=True)
class GainRecord:
    """Mean accuracy of the networks of one attention variant under one condition, and its gain over the baseline.

    Of networks that segment the accuracy is the mIoU, as `quantity` says. Accuracy and gain are of the same evaluation,
    of so many `images`, or sentences; those of all test images have no number there. Intervals are Student's t over
    seeds, for gains over the `gain_seeds` that both have; None for a single seed and for the baseline itself. Under
    attack, the strongest attack on each network counts. Networks under AutoAttack have a condition of their own,
    because those without cannot be compared with them.
    """

    recipe: str
    condition: str
    images: int | None
    seeds: int
    accuracy: float
    low: float | None
    high: float | None
    gain_seeds: int | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    quantity: str = Quantity.ACCURACY.words


@dataclass(frozen=True)
class _Column:
    """A condition by name, the accuracy of a network under it, and of how many images that is, if known."""

    name: str
    accuracy: Callable[[EvaluatedNetwork], float]
    images: int | None
    coarseness: float


def gain_records(evaluations: Sequence[Evaluation]) -> list[GainRecord]:
    """By attention variant and condition.

    The baseline is plain symmetric attention, from the largest list of comparable groups that has it; networks of other
    sizes are compared with it, too.
    """
    groups = all_groups(evaluations)
    baseline = next((group for group in groups if group.attention.is_plain_symmetric), None)
    return [record for group in groups for record in _records(group, baseline, evaluations)]


def _records(
    group: NetworkGroup, baseline: NetworkGroup | None, evaluations: Sequence[Evaluation]
) -> Iterator[GainRecord]:
    examples = "sentences" if group.reads_sentences else "images"
    for kind in (ConditionKind.CLEAN, *AVERAGED, ConditionKind.ATTACK):
        compared = None if baseline is None or baseline is group else [group, baseline]
        both = None if compared is None else SharedConditions.of(compared, kind, evaluations)
        own = SharedConditions.of([group], kind, evaluations, both)
        if own is None:
            continue
        gains = {} if both is None else {column.name: column for column in _columns(kind, both, examples)}
        columns = {column.name: (column, own.networks[0]) for column in _columns(kind, own, examples)}
        if both is not None:  # which the baseline may have been without AutoAttack
            columns = {name: (column, both.networks[0]) for name, column in gains.items()} | columns
        if both is not None and kind in AVERAGED and both.keys < own.keys:  # as the gain, of the conditions of both
            columns = {name: (gains[name], networks) for name, (_, networks) in columns.items()}
        for column, networks in columns.values():
            values = np.array([column.accuracy(network) for network in networks])
            low, high = student_interval(values, CONFIDENCE, column.coarseness / 2**0.5) or (None, None)
            yield GainRecord(
                *(group.name, column.name, column.images, len(values), float(values.mean()), low, high),
                *_gained(both, gains.get(column.name)),
                group.quantity.words,
            )


def _gained(
    both: SharedConditions | None, column: _Column | None
) -> tuple[int | None, float | None, float | None, float | None]:
    """Seeds, mean and interval of the differences; None of each where there is nothing to compare."""
    if both is None or column is None:
        return None, None, None, None
    found = both.differences(column.accuracy)
    low, high = student_interval(found, CONFIDENCE, column.coarseness) or (None, None)
    return len(found), float(found.mean()), low, high


def _columns(kind: ConditionKind, shared: SharedConditions, examples: str) -> Iterator[_Column]:
    """The conditions of a kind."""
    column = partial(_Column, images=shared.images, coarseness=shared.coarseness)
    if kind is ConditionKind.CLEAN:
        if all("test_accuracy" in network.facts for networks in shared.networks for network in networks):
            # Cards do not say how many images that half has.
            yield _Column(f"clean, all test {examples}", lambda network: network.facts["test_accuracy"], None, 0.0)
        yield column("clean", clean_accuracy)
    elif kind in AVERAGED:
        yield column("corrupted" if kind is ConditionKind.CORRUPTION else "noisy", shared.averaged)
    else:
        for epsilon in shared.strengths:
            how = _STRONGEST if shared.by_autoattack(epsilon) else ""
            name = f"attacked, ε = {255 * epsilon:.3g}/255{how}"
            yield column(name, partial(shared.attacked, epsilon=epsilon))


def conditions_of(records: Sequence[GainRecord]) -> list[str]:
    """Their names; an attack with AutoAttack stands next to the one of its ε without."""
    names = list(dict.fromkeys(record.condition for record in records))
    plain = list(dict.fromkeys(name.removesuffix(_STRONGEST) for name in names))
    return sorted(names, key=lambda name: (plain.index(name.removesuffix(_STRONGEST)), name))


def gain_figure(records: Sequence[GainRecord], paths: Sequence[Path]) -> None:
    """A panel per condition, a row per recipe: the gain in points with its interval over seeds, all on one scale.

    At least one record must have a gain.
    """
    compared = [record for record in records if record.gain is not None]
    recipes = list(dict.fromkeys(record.recipe for record in compared))
    conditions = conditions_of(compared)
    places = {recipe: len(recipes) - 1 - place for place, recipe in enumerate(recipes)}
    edge = _edge(compared)
    width = max(_LEAST_WIDTH, 1.6 + 1.5 * len(conditions))
    with drawing(paths, 1, len(conditions), (width, 0.9 + 0.2 * len(recipes))) as axes:
        for axis, condition in zip(axes[0], conditions, strict=True):
            own = [record for record in compared if record.condition == condition]
            axis.axvline(0, color="0.5", lw=0.8)
            for record in own:
                _row(axis, record, places[record.recipe], edge)
            title = condition.replace(_STRONGEST, f",\n{_STRONGEST[2:]}")
            axis.set(title=title, yticks=[], ylim=(-0.7, len(recipes) - 0.3), xlim=(-edge, edge))
        axes[0, 0].set_yticks(list(places.values()), list(places))
        axes[0, 0].figure.supxlabel(
            "← worse than symmetric attention | points, with 95 % intervals over seeds | better →", fontsize="medium"
        )


def _ends(record: GainRecord) -> tuple[float, float, float]:
    """Gain and interval in points; for a single seed the interval is the gain itself."""
    gain = record.gain or 0.0
    low, high = (gain if end is None else end for end in (record.gain_low, record.gain_high))
    return 100 * gain, 100 * low, 100 * high


def _edge(records: Sequence[GainRecord]) -> float:
    """The limit of the axis on both sides of 0; it includes every gain, but not always its whole interval."""
    ends = [_ends(record) for record in records]
    far = _FAR * median(high - low for _, low, high in ends)
    return 1.1 * max(max(map(abs, own)) if own[2] - own[1] <= far else abs(own[0]) for own in ends) or 1.0


def _row(axis: Any, record: GainRecord, place: int, edge: float) -> None:
    """A dot and its interval, with an arrow if the interval extends beyond the edge."""
    gain, low, high = _ends(record)
    if low < high:
        axis.plot([max(low, -edge), min(high, edge)], [place, place], color=BLUE, lw=1)
    axis.plot([gain], [place], color=BLUE, marker="o", ms=3, ls="none")
    for beyond, at, marker in ((low < -edge, -edge, "<"), (high > edge, edge, ">")):
        if beyond:
            axis.plot([at], [place], color=BLUE, marker=marker, ms=4, ls="none", clip_on=False)
