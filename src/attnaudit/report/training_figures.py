"""Images of trainings: accuracy over seeds, and calibrated scores, by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnaudit.report.drawing import drawing, look
from attnaudit.report.training_curves import AccuracyRecord, ScoreRecord


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
    """Calibrated scores by epoch, a panel per measure, a line per training; chance and the claim are drawn in."""
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
        axes[0, 0].set_ylabel("calibrated score")
        axes[0, 0].figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)


def _band(axis: Any, epochs: Sequence[float], own: Sequence[AccuracyRecord | ScoreRecord], place: int) -> None:
    bounds = [(e, r.low, r.high) for e, r in zip(epochs, own, strict=True) if r.low is not None]
    if bounds:
        at, low, high = zip(*bounds, strict=True)
        axis.fill_between(at, low, high, color=look(place)["color"], alpha=0.2, lw=0)
