"""Training runs by epoch: accuracy over seeds, and scores. Numbers and figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from attnaudit.claims.kpca_values import CLAIM
from attnaudit.measures import measure_named
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.training import ClassifierEpoch, TrainingRun
from attnaudit.report.drawing import drawing, look
from attnaudit.statistics.intervals import CONFIDENCE, share_coarseness, student_interval
from attnaudit.statistics.scores import head_score

#: Occurs in the names of single images, BATCH/NUMBER, which are scored; whole batches are not.
_SCORED = "/"


@dataclass(frozen=True)
class AccuracyRecord:
    """Mean test accuracy of the runs of a recipe after an epoch; the interval is Student's t over seeds."""

    recipe: str
    epoch: int
    mean: float
    low: float | None
    high: float | None
    seeds: int


@dataclass(frozen=True)
class ScoreRecord:
    """The score of a run's heads after an epoch, from chance (0) to kernel PCA (1), with its interval over inputs."""

    training: str
    epoch: float
    measure: str
    score: float | None
    low: float | None
    high: float | None
    heads: int


def accuracy_records(trainings: Sequence[TrainingRun]) -> list[AccuracyRecord]:
    """By recipe and epoch, over the runs that reached it; language models have no accuracy."""
    found: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for training in trainings:
        rounding = share_coarseness(training.settings.test_examples) / 2**0.5
        for epoch in training.history:
            if isinstance(epoch, ClassifierEpoch):
                found[training.recipe.name, epoch.epoch].append((epoch.test_accuracy, rounding))
    records = []
    for (recipe, number), own in sorted(found.items()):
        values, roundings = zip(*own, strict=True)
        low, high = student_interval(np.array(values), CONFIDENCE, max(roundings)) or (None, None)
        records.append(AccuracyRecord(recipe, number, float(np.mean(values)), low, high, len(values)))
    return records


def score_records(trainings: Sequence[TrainingRun]) -> list[ScoreRecord]:
    """The measures that decide `kpca-values`, for every run with a monitor and every epoch it measured."""
    return [record for training in trainings if training.is_monitored for record in _of_training(training)]


def _of_training(training: TrainingRun) -> list[ScoreRecord]:
    rows = training.rows.table()
    rows = rows.filter(pc.match_substring(pc.cast(rows["input"], "string"), _SCORED))
    records = []
    for step in sorted(pc.unique(rows["step"]).to_pylist()):
        evidence = Evidence.of_table(rows.filter(pc.equal(rows["step"], step)))
        ((model,),) = evidence.combinations("model")
        for measure in CLAIM.decided_by:
            table = head_table(evidence, model, measure, CLAIM.theory)
            found = head_score(table, measure_named(measure))
            mean, (low, high) = None, (None, None)
            if found.score is not None:
                mean, (low, high) = found.score.mean, found.score.interval or (None, None)
            epoch = training.epoch_at(step)
            records.append(ScoreRecord(training.name, epoch, measure, mean, low, high, found.informative))
    return records


def accuracy_figure(records: Sequence[AccuracyRecord], paths: Sequence[Path]) -> None:
    """Test accuracy by epoch, a line per recipe, with the interval over seeds as a band."""
    with drawing(paths, 1, 1, (5.0, 3.2)) as axes:
        axis = axes[0, 0]
        for place, recipe in enumerate(dict.fromkeys(record.recipe for record in records)):
            own = [record for record in records if record.recipe == recipe]
            most = max(record.seeds for record in own)
            label = f"{recipe} ({most} seed{'s' if most > 1 else ''})"
            epochs = [record.epoch for record in own]
            axis.plot(epochs, [record.mean for record in own], label=label, **look(place))
            _band(axis, epochs, own, place)
        axis.set(xlabel="epoch", ylabel="test accuracy, mean over seeds")
        axis.legend(loc="lower right")


def score_figure(records: Sequence[ScoreRecord], paths: Sequence[Path]) -> None:
    """Scores by epoch, a panel per measure, a line per run; chance and the claim are marked."""
    measures = list(dict.fromkeys(record.measure for record in records))
    trainings = list(dict.fromkeys(record.training for record in records))
    with drawing(paths, 1, len(measures), (2.6 * len(measures), 3.2)) as axes:
        for axis, measure in zip(axes[0], measures, strict=True):
            for place, training in enumerate(trainings):
                own = [r for r in records if (r.measure, r.training) == (measure, training) and r.score is not None]
                epochs = [record.epoch for record in own]
                axis.plot(epochs, [record.score for record in own], label=training, **look(place))
                _band(axis, epochs, own, place)
            for level, name in ((0, "chance"), (1, "kernel PCA")):
                axis.axhline(level, color="0.5", lw=0.8)
                axis.annotate(
                    name, (1, level), xycoords=("axes fraction", "data"), ha="right", va="bottom", color="0.4"
                )
            axis.set(xlabel="epoch", title=measure)
        axes[0, 0].set_ylabel("score")
        axes[0, 0].figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _band(axis: Any, epochs: Sequence[float], own: Sequence[AccuracyRecord | ScoreRecord], place: int) -> None:
    bounds = [(e, r.low, r.high) for e, r in zip(epochs, own, strict=True) if r.low is not None]
    if bounds:
        at, low, high = zip(*bounds, strict=True)
        axis.fill_between(at, low, high, color=look(place)["color"], alpha=0.2, lw=0)
