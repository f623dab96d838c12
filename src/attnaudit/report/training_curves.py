"""What the images of trainings show: accuracy by epoch over seeds, and calibrated scores by epoch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from attnaudit.claims.kpca_values import CLAIM
from attnaudit.claims.training import Training
from attnaudit.measures import measure_named
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
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


def accuracy_records(trainings: Sequence[Training]) -> list[AccuracyRecord]:
    """By recipe and epoch, over the trainings that got that far; language models have no accuracy."""
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for training in trainings:
        for record in () if training.course.of_text else training.course.history:
            found[str(training.course.recipe["name"]), int(record["epoch"])].append(record["test_accuracy"])
    records = []
    for (recipe, epoch), values in sorted(found.items()):
        low, high = student_interval(np.array(values), CONFIDENCE) or (None, None)
        records.append(AccuracyRecord(recipe, epoch, float(np.mean(values)), low, high, len(values)))
    return records


def score_records(trainings: Sequence[Training]) -> list[ScoreRecord]:
    """The measures that decide `kpca-values`, for every training with a monitor and every epoch it looked at."""
    return [record for training in trainings if training.watched is not None for record in _of_training(training)]


def _of_training(training: Training) -> list[ScoreRecord]:
    assert training.watched is not None
    rows = training.watched.rows.table()
    rows = rows.filter(pc.match_substring(pc.cast(rows["input"], "string"), _SCORED))
    records = []
    for step in sorted(pc.unique(rows["step"]).to_pylist()):
        evidence = Evidence.of_table(rows.filter(pc.equal(rows["step"], step)))
        ((model,),) = evidence.combinations("model")
        for measure in CLAIM.deciding:
            table = head_table(evidence, model, measure, CLAIM.theory)
            found = head_score(table, measure_named(measure), level=CONFIDENCE)
            low, high = found.interval or (None, None)
            epoch = step / training.watched.steps_per_epoch
            records.append(ScoreRecord(training.course.name, epoch, measure, found.mean, low, high, found.heads))
    return records
