"""The paper every figure is drawn on: our style, colours for everyone, the same bytes for the same data."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnaudit.extras import optional
from attnaudit.records.files import write_whole

# Okabe & Ito's palette keeps its contrasts for colour-blind readers.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
_COLOURS = (BLUE, VERMILION, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#000000")
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
    "pdf.fonttype": 42,  # TrueType, embedded: publishers refuse matplotlib's default, Type 3
}
#: What would change from one writing to the next.
_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def look(place: int) -> dict[str, str]:
    """Colour and line of curve number `place`: 28 can be told apart."""
    return {"color": _COLOURS[place % len(_COLOURS)], "ls": _LINES[place % len(_LINES)]}


def for_screen_and_print(folder: Path, name: str) -> tuple[Path, ...]:
    """The files of a figure that is to be published: SVG and PDF."""
    return tuple(folder / f"{name}{suffix}" for suffix in _UNDATED)


@contextmanager
def drawing(paths: Sequence[Path], rows: int, columns: int, size: tuple[float, float]) -> Iterator[Any]:
    """A grid of axes in our style; leaving the block writes the figure, whole, and leaves matplotlib as it was.

    Args:
        paths: the files to write; their suffixes, `.svg` or `.pdf`, say how.
        rows: of axes.
        columns: of axes.
        size: width and height in inches; 3.4 is a column of print, 7 a page.
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
    """Every label of a log axis says that it is one, so that no figure can forget it."""
    for axis in axes:
        for one in (axis.xaxis, axis.yaxis):
            if one.get_scale() == "log" and one.get_label_text():
                one.set_label_text(f"{one.get_label_text()} (log scale)")
