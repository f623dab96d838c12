"""The figure of the SST-2 experiment: accuracy by noise and rate, a curve per attention with intervals over seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import floor
from pathlib import Path

import numpy as np

from attnaudit.errors import MissingExtraError
from attnaudit.records.evaluated_networks import Evaluation
from attnaudit.records.evaluation import ConditionKind
from attnaudit.report.data_files import write_rows
from attnaudit.report.drawing import drawing, look
from attnaudit.robustness.network_groups import all_groups
from attnaudit.robustness.shared_conditions import clean_accuracy
from attnaudit.statistics.intervals import CONFIDENCE, share_coarseness, student_interval


@dataclass(frozen=True)
class NoiseRecord:
    """Mean accuracy of the networks of one recipe under one noise at one rate; clean at rate 0 of every noise."""

    recipe: str
    noise: str
    rate: float
    seeds: int
    accuracy: float
    low: float | None
    high: float | None


def noise_records(evaluation: Evaluation) -> Iterator[NoiseRecord]:
    """By recipe, noise and rate."""
    for group in all_groups([evaluation]):
        networks = list(group.by_evaluation[0].values())
        noisy = [network.under(ConditionKind.NOISE) for network in networks]
        clean = np.array([clean_accuracy(network) for network in networks])
        for noise in dict.fromkeys(entry.condition.name for entry in noisy[0]):
            found = {0.0: clean}
            for rate in sorted({entry.condition.strength for entry in noisy[0] if entry.condition.name == noise}):
                at = [e for own in noisy for e in own if (e.condition.name, e.condition.strength) == (noise, rate)]
                found[rate] = np.array([entry.accuracy for entry in at])
            rounding = share_coarseness(evaluation.images) / 2**0.5
            for rate, values in found.items():
                low, high = student_interval(values, CONFIDENCE, rounding) or (None, None)
                yield NoiseRecord(group.name, noise, rate, len(values), float(values.mean()), low, high)


def write_noises(evaluation: Evaluation, folder: Path) -> None:
    """noises.csv, and noises.svg if matplotlib is there."""
    records = list(noise_records(evaluation))
    write_rows([vars(record) for record in records], folder / "noises.csv")
    with suppress(MissingExtraError):
        _draw(records, [folder / "noises.svg"])


def _draw(records: Sequence[NoiseRecord], paths: Sequence[Path]) -> None:
    noises = list(dict.fromkeys(record.noise for record in records))
    recipes = list(dict.fromkeys(record.recipe for record in records))
    lowest = 10 * floor(10 * min(record.accuracy if record.low is None else record.low for record in records))
    with drawing(paths, 1, len(noises), (2.4 * len(noises), 3.0)) as axes:
        for axis, noise in zip(axes[0], noises, strict=True):
            for number, recipe in enumerate(recipes):
                own = [record for record in records if (record.recipe, record.noise) == (recipe, noise)]
                places = [100 * record.rate + 0.6 * (number - (len(recipes) - 1) / 2) for record in own]
                means = [100 * record.accuracy for record in own]
                axis.plot(places, means, marker="o", ms=2.5, label=recipe, **look(number))
                for place, record in zip(places, own, strict=True):
                    if record.low is not None and record.high is not None:
                        ends = [100 * record.low, 100 * record.high]
                        axis.plot([place, place], ends, color=look(number)["color"], lw=0.8)
            axis.set(title=noise, xlabel="% of words", ylim=(lowest, 100))
        axes[0, 0].set_ylabel("accuracy in %, mean over seeds")
        handles, names = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(handles, names, loc="outside upper center", ncols=3)
