"""What the images of trainings show: accuracy by epoch over seeds, and calibrated scores by epoch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from attnaudit.claims.kpca_values import CLAIM
from attnaudit.measures import measure_named
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.training import ImageEpoch, TrainingRun
from attnaudit.statistics.intervals import CONFIDENCE, student_interval
from attnaudit.statistics.scores import head_score

#: What is not watched on a batch as a whole but on its first images, whose names are BATCH/NUMBER.
_SCORED = "/"


@dataclass(frozen=True)
class AccuracyRecord:
    """Mean test accuracy of the trainings by one recipe after an epoch; the interval is Student's t over seeds."""

    recipe: str
    epoch: int
    mean: float
    low: float | None
    high: float | None
    seeds: int


@dataclass(frozen=True)
class ScoreRecord:
    """Where the heads of a training lie between chance (0) and kernel PCA (1) after an epoch; bootstrap over inputs."""

    training: str
    epoch: float
    measure: str
    score: float | None
    low: float | None
    high: float | None
    heads: int


def accuracy_records(trainings: Sequence[TrainingRun]) -> list[AccuracyRecord]:
    """By recipe and epoch, over the trainings that got that far; language models have no accuracy."""
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for training in trainings:
        for epoch in training.history:
            if isinstance(epoch, ImageEpoch):
                found[training.recipe.name, epoch.epoch].append(epoch.test_accuracy)
    records = []
    for (recipe, number), values in sorted(found.items()):
        low, high = student_interval(np.array(values), CONFIDENCE) or (None, None)
        records.append(AccuracyRecord(recipe, number, float(np.mean(values)), low, high, len(values)))
    return records


def score_records(trainings: Sequence[TrainingRun]) -> list[ScoreRecord]:
    """The measures that decide `kpca-values`, for every training with a monitor and every epoch it looked at."""
    return [record for training in trainings if training.is_monitored for record in _of_training(training)]


def _of_training(training: TrainingRun) -> list[ScoreRecord]:
    rows = training.rows.table()
    rows = rows.filter(pc.match_substring(pc.cast(rows["input"], "string"), _SCORED))
    records = []
    for step in sorted(pc.unique(rows["step"]).to_pylist()):
        evidence = Evidence.of_table(rows.filter(pc.equal(rows["step"], step)))
        ((model,),) = evidence.combinations("model")
        for measure in CLAIM.deciding:
            table = head_table(evidence, model, measure, CLAIM.theory)
            found = head_score(table, measure_named(measure), level=CONFIDENCE)
            low, high = found.interval or (None, None)
            epoch = training.epoch_at(step)
            records.append(ScoreRecord(training.name, epoch, measure, found.mean, low, high, found.heads))
    return records
