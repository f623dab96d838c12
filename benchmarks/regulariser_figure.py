"""The picture of the regulariser's effect on a training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attnaudit.report.drawing import drawing, look
from attnaudit.statistics.intervals import CONFIDENCE, student_interval


def draw(curves: Mapping[float, Mapping[str, np.ndarray]], untrained: np.ndarray, file: Path) -> None:
    """Alignment by layer; then test loss and accuracy by epoch, less those without, with intervals over seeds."""
    with drawing([file], 1, 3, (7.0, 2.5)) as axes:
        aligned, loss, accuracy = axes[0]
        layers = np.arange(1, untrained.shape[1] + 1)
        for number, (weight, own) in enumerate(curves.items()):
            style, name = look(number), f"pca_weight = {weight:g}".replace("-", "−")
            _band(aligned, layers, own["explained"], style, name)
            if weight:
                epochs = np.arange(1, own["loss"].shape[1] + 1)
                _band(loss, epochs, own["loss"] - curves[0]["loss"], style, name)
                _band(accuracy, epochs, 100 * (own["accuracy"] - curves[0]["accuracy"]), style, name)
        aligned.plot(layers, untrained.mean(axis=0), color="0.5", ls=":", label="untrained")
        aligned.set(xlabel="layer", xticks=layers, title="explained by keys\n(0 chance, 1 PCA)")
        loss.set(xlabel="epoch", title="test loss\nless that without")
        accuracy.set(xlabel="epoch", title="test accuracy (points)\nless that without")
        for axis in (loss, accuracy):
            axis.axhline(0, color="0.5", lw=0.8)
        handles, labels = aligned.get_legend_handles_labels()
        aligned.figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))


def _band(axis: Any, places: np.ndarray, values: np.ndarray, style: Mapping[str, str], name: str) -> None:
    """The mean over rows with Student's interval."""
    axis.plot(places, values.mean(axis=0), label=name, lw=1, **style)
    intervals = [student_interval(column, CONFIDENCE) or (np.nan, np.nan) for column in values.T]
    low, high = zip(*intervals, strict=True)
    axis.fill_between(places, low, high, color=style["color"], alpha=0.15, lw=0)
