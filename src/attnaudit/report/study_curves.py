"""The study's figures of training, Figures 1 and 4: our curves, and the published points among them.

The study draws Figure 1 on a linear axis from epoch 10 on, where ‖φ‖² cannot be told from 0 and no longer exceeds ‖h‖².
Ours begins with the untrained network, on a log scale, the same for all runs; it shows one batch, and the table of its
numbers has both.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnaudit.extras import optional
from attnaudit.papers.training_curves import FIGURE1, FIGURE4, OURS, CurveRecord, Curves
from attnaudit.report.drawing import BLUE, GREEN, VERMILION, drawing

#: Colour and line of a batch.
_BATCHES = {"train": (BLUE, "-"), "test": (VERMILION, "--")}
#: Symbol of a measure of Figure 1, its look, and where its name stands beside the end of its curve, in points. J is a
#: line, and ‖h‖² dots on it: the two are nearly equal once ‖φ‖² is small.
_NORMS: dict[str, tuple[str, dict[str, Any], int]] = {
    "projection_error_mae": (r"$J$", {"color": BLUE}, 5),
    "output_norm2": (r"$\|h\|^2$", {"color": VERMILION, "ls": "", "marker": "o", "ms": 2}, -7),
    "phi_norm2": (r"$\|\varphi(q)\|^2$", {"color": GREEN}, -2),
}
_ERRORS = {
    "projection_error_rel_output": r"$|\|\varphi\|^2-\|h\|^2|\,/\,\|h\|^2$",
    "projection_error_rel_phi": r"$|\|\varphi\|^2-\|h\|^2|\,/\,\|\varphi\|^2$",
}
_MARKERS = {"train": "o", "test": "s"}
_HOLLOW = {"ls": "", "ms": 4.5, "mfc": "none", "mew": 0.8, "zorder": 3}
_MOST_MARKERS = 25
#: Epochs that may be named; early ones are the most telling, so that the axis goes by square roots.
_EPOCHS = (0, 1, 5, 10, 25, 50, 100, 200, 500, 1000)


def norm_curves(runs: Sequence[Curves], paths: Sequence[Path]) -> None:
    """Figure 1: J, ‖h‖² and ‖φ‖² over epochs on one batch, a panel per run, all on the same scale."""
    columns = min(len(runs), 2)
    rows = -(-len(runs) // columns)
    shown = [_of_one_batch(run) for run in runs]
    everything = [record for own in shown for record in own]
    values, last = [r.value for r in everything if r.value], max((r.epoch for r in everything), default=1.0)
    with drawing(paths, rows, columns, (3.4 * columns, 0.3 + 2.4 * rows)) as axes:
        for place, axis in enumerate(axes.flat):
            if place >= len(runs):
                axis.set_visible(False)
                continue
            _norms(axis, shown[place])
            axis.set_xscale("function", functions=(_root, _square))
            ticks = [epoch for epoch in _EPOCHS if epoch <= max(last, 1)]
            axis.set_xticks(ticks, list(map(str, ticks)))
            axis.set(yscale="log", xlim=(0, 1.05 * max(last, 1)), title=_title(runs[place]))
            if values:
                axis.set_ylim(min(values) / 2, 2 * max(values))
            if place % columns == 0:
                batch = shown[place][0].batch if shown[place] else "test"
                axis.set_ylabel(f"mean over the {batch} batch")
            if place + columns >= len(runs):
                axis.set_xlabel("epoch")


def _root(epochs: Any) -> Any:
    return np.sqrt(np.maximum(epochs, 0))


def _square(roots: Any) -> Any:
    return np.square(roots)


def _of_one_batch(run: Curves) -> list[CurveRecord]:
    """On test images, or on those of training if there are no others."""
    measured = {record.batch for record in run.records if record.source == OURS}
    batch = "test" if "test" in measured else "train"
    return [record for record in run.records if record.batch == batch and record.value is not None]


def _norms(axis: Any, records: Sequence[CurveRecord]) -> None:
    """The curves, each with its name at its end, and hollow points where the study has published one."""
    for measure in FIGURE1:
        symbol, style, offset = _NORMS[measure]
        own = [record for record in records if record.measure == measure]
        epochs, values = _points(record for record in own if record.source == OURS)
        axis.plot(epochs, values, lw=1, **style)
        if values:
            at = {"xytext": (5, offset), "textcoords": "offset points"}
            axis.annotate(symbol, (epochs[-1], values[-1]), color=style["color"], **at)
        published = _points(record for record in own if record.source != OURS)
        axis.plot(*published, color=style["color"], marker="D" if measure == FIGURE1[0] else "o", **_HOLLOW)


def error_curves(runs: Sequence[Curves], paths: Sequence[Path]) -> None:
    """Figure 4: the projection error relative to ‖h‖² (left) and to ‖φ‖² (right) over epochs, a row per run."""
    with drawing(paths, len(runs), len(FIGURE4), (6.8, 0.4 + 2.3 * len(runs))) as axes:
        for row, run in enumerate(runs):
            for axis, measure in zip(axes[row], FIGURE4, strict=True):
                _errors(axis, run, measure)
                axis.set(xlabel="epoch", ylabel=f"mean {_ERRORS[measure]}")
            axes[row, 0].set_title(_title(run), loc="left")
        _legend(axes.flat[0].figure, runs)


def _errors(axis: Any, run: Curves, measure: str) -> None:
    shown = [record for record in run.records if record.measure == measure and record.value is not None]
    for batch in _BATCHES:
        own = [record for record in shown if record.batch == batch]
        ours, published = [r for r in own if r.source == OURS], [r for r in own if r.source != OURS]
        axis.plot(*_points(ours), **_look(batch), markevery=max(1, len(ours) // _MOST_MARKERS))
        axis.plot(*_points(published), color=_BATCHES[batch][0], marker=_MARKERS[batch], **_HOLLOW)
    values = [record.value for record in shown if record.value]
    if values and max(values) > 10 * min(values):
        axis.set_yscale("log")


def _look(batch: str) -> dict[str, Any]:
    colour, line = _BATCHES[batch]
    return {"color": colour, "ls": line, "lw": 0.9, "marker": _MARKERS[batch], "ms": 2.5}


def _points(records: Iterable[CurveRecord]) -> tuple[list[float], list[float | None]]:
    ordered = sorted(records, key=lambda record: record.epoch)
    return [record.epoch for record in ordered], [record.value for record in ordered]


def _title(run: Curves) -> str:
    network = f"d = {run.width}, q and k {'standardised' if run.standardised else 'as they are'}"
    published = f"\nhollow: published {run.published.name}" if run.published is not None else ""
    return f"{textwrap.fill(run.run, 44)}\n{network}{published}"


def _legend(figure: Any, runs: Sequence[Curves]) -> None:
    """The batches that there are."""
    line = optional("matplotlib.lines", "report", "Drawing a figure").Line2D
    present = {record.batch for run in runs for record in run.records}
    handles = [line([], [], label=batch, **_look(batch)) for batch in _BATCHES if batch in present]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
