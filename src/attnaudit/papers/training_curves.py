"""The numbers behind the study's Figures 1 and 4: ‖φ(q)‖², ‖h‖² and the projection error over training.

With φ_i = ‖φ(q_i)‖² and h_i = ‖h_i‖² of a token, J = mean |φ_i - h_i|; the relative errors are mean |φ_i - h_i|/h_i and
mean |φ_i - h_i|/φ_i. Means are over the tokens of a fixed batch, then over heads and layers (Sarıtaş & Yıldız 2025,
arXiv:2505.07908).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import pyarrow as pa

from attnaudit.display import told_apart
from attnaudit.papers.published_curves import TRAININGS, PublishedTraining
from attnaudit.records.architecture import Architecture
from attnaudit.records.training import TrainingRun

FIGURE1 = ("projection_error_mae", "output_norm2", "phi_norm2")
FIGURE4 = ("projection_error_rel_output", "projection_error_rel_phi")
OURS = "ours"


@dataclass(frozen=True)
class CurveRecord:
    """One point of a curve: a mean over `heads` heads of all layers, or a published number."""

    run: str
    source: str
    batch: str
    measure: str
    epoch: float
    value: float | None
    heads: int | None = None
    rejected: int | None = None


@dataclass(frozen=True)
class Curves:
    """A run's points, and the training of the study to compare them with, if there is one."""

    run: str
    standardised: bool
    width: str
    published: PublishedTraining | None
    records: tuple[CurveRecord, ...]


def curves(runs: Sequence[TrainingRun], measures: Sequence[str]) -> list[Curves]:
    """The curves of every run, followed by those of the study.

    Raises:
        RunFolderError: a run lacks one of the measures.
    """
    return [_curves(run, label, measures) for run, label in zip(runs, _labels(runs), strict=True)]


def _curves(run: TrainingRun, label: str, measures: Sequence[str]) -> Curves:
    table = run.batch_means(measures)
    widths = sorted(table["dim"].unique().to_pylist())
    published = TRAININGS.get(widths[0]) if len(widths) == 1 else None
    records = _ours(run, label, table)
    if published is not None:
        records += [
            CurveRecord(label, f"published {published.name}", batch, measure, epoch, value)
            for (measure, batch), curve in published.curves.items()
            if measure in measures and batch in run.batches
            for epoch, value in curve.points
        ]
    width, model = " and ".join(map(str, widths)), run.recipe.model
    return Curves(label, isinstance(model, Architecture) and model.standardise, width, published, tuple(records))


def _ours(run: TrainingRun, label: str, table: pa.Table) -> list[CurveRecord]:
    """Means over layers and heads; heads without a number are counted and left out."""
    groups = table.group_by(["measure", "input", "step"], use_threads=False)
    means = groups.aggregate([("value", "mean"), ("value", "count"), ([], "count_all")]).to_pylist()
    return [
        CurveRecord(
            run=label,
            source=OURS,
            batch=row["input"],
            measure=row["measure"],
            epoch=run.epoch_at(row["step"]),
            value=row["value_mean"],
            heads=row["value_count"],
            rejected=row["count_all"] - row["value_count"],
        )
        for row in sorted(means, key=itemgetter("measure", "input", "step"))
    ]


def _labels(runs: Sequence[TrainingRun]) -> list[str]:
    """The recipes' names, with the folder where two runs share one."""
    return told_apart([run.recipe.name for run in runs], [str(run.path) for run in runs])
