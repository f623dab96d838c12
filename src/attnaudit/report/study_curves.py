"""The study's figures of training, Figures 1 and 4: our curves, and the published points among them.

The study draws Figure 1 on a linear axis from epoch 10 on, where ‖φ‖² cannot be told from 0 and no longer exceeds ‖h‖².
Ours begins with the untrained network, on a log scale wherever the numbers span more than a decade.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from attnaudit.extras import optional
from attnaudit.papers.training_curves import FIGURE1, FIGURE4, OURS, CurveRecord, Curves
from attnaudit.report.drawing import BLUE, VERMILION, drawing

#: Colour and line of a batch.
_BATCHES = {"train": (BLUE, "-"), "test": (VERMILION, "--")}
#: Symbol of a measure, and its marker on either batch: shapes tell them apart in black and white.
_LOOKS = {
    "projection_error_mae": (r"$J$", {"train": "D", "test": "d"}),
    "output_norm2": (r"$\|h\|^2$", {"train": "o", "test": "s"}),
    "phi_norm2": (r"$\|\varphi(q)\|^2$", {"train": "^", "test": "v"}),
    "projection_error_rel_output": (r"$|\|\varphi\|^2-\|h\|^2|\,/\,\|h\|^2$", {"train": "o", "test": "s"}),
    "projection_error_rel_phi": (r"$|\|\varphi\|^2-\|h\|^2|\,/\,\|\varphi\|^2$", {"train": "o", "test": "s"}),
}
#: J is a bare line and ‖h‖² bare markers on it: the two are nearly equal once ‖φ‖² is small.
_WITHOUT_MARKERS, _WITHOUT_LINE = "projection_error_mae", "output_norm2"
_HOLLOW = {"ls": "", "ms": 4.5, "mfc": "none", "mew": 0.8, "zorder": 3}
_MOST_MARKERS = 25


def norm_curves(runs: Sequence[Curves], paths: Sequence[Path]) -> None:
    """Figure 1: J as lines, ‖h‖² and ‖φ‖² as markers over epochs, a panel per run."""
    columns = min(len(runs), 2)
    rows = -(-len(runs) // columns)
    with drawing(paths, rows, columns, (3.4 * columns, 0.7 + 2.4 * rows)) as axes:
        for place, axis in enumerate(axes.flat):
            if place >= len(runs):
                axis.set_visible(False)
                continue
            _panel(axis, runs[place], FIGURE1)
            axis.set(xlabel="epoch", ylabel="mean over the batch", title=_title(runs[place]))
        _legend(axes.flat[0].figure, runs, FIGURE1)


def error_curves(runs: Sequence[Curves], paths: Sequence[Path]) -> None:
    """Figure 4: the projection error relative to ‖h‖² (left) and to ‖φ‖² (right) over epochs, a row per run."""
    with drawing(paths, len(runs), len(FIGURE4), (6.8, 0.4 + 2.3 * len(runs))) as axes:
        for row, run in enumerate(runs):
            for axis, measure in zip(axes[row], FIGURE4, strict=True):
                _panel(axis, run, [measure])
                axis.set(xlabel="epoch", ylabel=f"mean {_LOOKS[measure][0]}")
            axes[row, 0].set_title(_title(run), loc="left")
        _legend(axes.flat[0].figure, runs, FIGURE4[:1])


def _panel(axis: Any, run: Curves, measures: Sequence[str]) -> None:
    shown = [record for record in run.records if record.measure in measures and record.value is not None]
    for measure in measures:
        for batch in _BATCHES:
            own = [r for r in shown if (r.measure, r.batch) == (measure, batch)]
            ours, published = [r for r in own if r.source == OURS], [r for r in own if r.source != OURS]
            axis.plot(*_points(ours), **_look(measure, batch), markevery=max(1, len(ours) // _MOST_MARKERS))
            axis.plot(*_points(published), color=_BATCHES[batch][0], marker=_LOOKS[measure][1][batch], **_HOLLOW)
    values = [record.value for record in shown if record.value]
    if values and max(values) > 10 * min(values):
        axis.set_yscale("log")


def _look(measure: str, batch: str) -> dict[str, Any]:
    colour, line = _BATCHES[batch]
    return {
        "color": colour,
        "ls": "" if measure == _WITHOUT_LINE else line,
        "lw": 0.9,
        "marker": "" if measure == _WITHOUT_MARKERS else _LOOKS[measure][1][batch],
        "ms": 2.5,
    }


def _points(records: Iterable[CurveRecord]) -> tuple[list[float], list[float | None]]:
    ordered = sorted(records, key=lambda record: record.epoch)
    return [record.epoch for record in ordered], [record.value for record in ordered]


def _title(run: Curves) -> str:
    network = f"d = {run.width}, q and k {'standardised' if run.standardised else 'as they are'}"
    published = f"; published: {run.published.name}" if run.published is not None else ""
    return f"{textwrap.fill(run.run, 44)}\n{network}{published}"


def _legend(figure: Any, runs: Sequence[Curves], measures: Sequence[str]) -> None:
    """A column per batch; of one measure alone the batches are the names."""
    line = optional("matplotlib.lines", "report", "Drawing a figure").Line2D
    present = {record.batch for run in runs for record in run.records}
    batches = [batch for batch in _BATCHES if batch in present]
    handles = [
        line([], [], label=f"{_LOOKS[measure][0]}, {batch}" if len(measures) > 1 else batch, **_look(measure, batch))
        for batch in batches
        for measure in measures
    ]
    columns = len(batches) if len(measures) > 1 else len(handles) + 1
    if any(run.published is not None for run in runs):
        below_first_batch = len(measures) if columns == len(batches) else len(handles)
        published = line([], [], color="0.3", marker="o", label="published (hollow)", **_HOLLOW)
        handles.insert(below_first_batch, published)
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)
