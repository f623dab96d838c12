"""Drawing figures: our style, colours for colour-blind readers, and the same bytes for the same data."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnaudit.extras import optional
from attnaudit.records.files import write_whole

# Okabe & Ito's palette keeps its contrast for colour-blind readers.
BLUE, VERMILION, GREEN, YELLOW, GREY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#808080"
_COLOURS = (BLUE, VERMILION, GREEN, "#CC79A7", YELLOW, "#56B4E9", "#000000")
_LINES = ("-", "--", "-.", ":")
_STYLE = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 8,
    "figure.titlesize": 8,
    "figure.labelsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "svg.fonttype": "none",
    "svg.hashsalt": "attnaudit",
    "pdf.fonttype": 42,  # embedded TrueType: publishers refuse Type 3, matplotlib's default
}
#: Metadata without dates, which would differ every time.
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def look(place: int) -> dict[str, str]:
    """The colour and line style of curve number `place`; the first 28 differ."""
    return {"color": _COLOURS[place % len(_COLOURS)], "ls": _LINES[place % len(_LINES)]}


def for_screen_and_print(folder: Path, name: str) -> tuple[Path, ...]:
    """The files of a figure for publication: SVG and PDF."""
    return tuple(folder / f"{name}{suffix}" for suffix in _UNDATED)


@contextmanager
def drawing(paths: Sequence[Path], rows: int, columns: int, size: tuple[float, float]) -> Iterator[Any]:
    """A grid of axes in our style; at the end of the block the figure is written and matplotlib's settings restored.

    Args:
        paths: the files to write, with suffix `.svg` or `.pdf`.
        rows: rows of axes.
        columns: columns of axes.
        size: width and height in inches; 3.4 is the width of a printed column, 7 of a page.
    """
    matplotlib = optional("matplotlib", "report", "Drawing a figure")
    figure_module = optional("matplotlib.figure", "report", "Drawing a figure")
    with matplotlib.rc_context(_STYLE):
        figure = figure_module.Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
        yield axes
        _name_log_scales(axes.flat)
        for path in paths:
            buffer = io.BytesIO()
            figure.savefig(buffer, format=path.suffix[1:], metadata=_UNDATED[path.suffix])
            write_whole(path, buffer.getvalue())


def _name_log_scales(axes: Iterable[Any]) -> None:
    """Add "(log scale)" to the label of every log axis."""
    for axis in axes:
        for one in (axis.xaxis, axis.yaxis):
            if one.get_scale() == "log" and one.get_label_text():
                one.set_label_text(f"{one.get_label_text()} (log scale)")
