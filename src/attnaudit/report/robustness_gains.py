"""What attentions gain over symmetric attention, condition by condition, as an image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from attnaudit.report.drawing import BLUE, drawing
from attnaudit.report.robust_table import GroupRecord

#: An interval that reaches so many times as far as is usual does not set the scale, but leaves the image.
_FAR = 4


def gains_figure(records: Sequence[GroupRecord], paths: Sequence[Path]) -> None:
    """A panel per condition, a row per recipe: the gain in points with its interval over seeds; one gain at least."""
    compared = [record for record in records if record.gain is not None]
    recipes = list(dict.fromkeys(record.recipe for record in compared))
    conditions = list(dict.fromkeys(record.condition for record in compared))
    places = {recipe: len(recipes) - 1 - place for place, recipe in enumerate(recipes)}
    with drawing(paths, 1, len(conditions), (1.6 + 1.5 * len(conditions), 0.9 + 0.2 * len(recipes))) as axes:
        for axis, condition in zip(axes[0], conditions, strict=True):
            own = [record for record in compared if record.condition == condition]
            edge = _edge(own)
            axis.axvline(0, color="0.5", lw=0.8)
            for record in own:
                _row(axis, record, places[record.recipe], edge)
            axis.set(title=condition, yticks=[], ylim=(-0.7, len(recipes) - 0.3), xlim=(-edge, edge))
        axes[0, 0].set_yticks(list(places.values()), list(places))
        axes[0, 0].figure.supxlabel("points over symmetric attention, 95 % over seeds", fontsize="small")


def _ends(record: GroupRecord) -> tuple[float, float, float]:
    """Gain and interval in points; an interval of one seed is the gain itself."""
    gain = record.gain or 0.0
    low, high = (gain if end is None else end for end in (record.gain_low, record.gain_high))
    return 100 * gain, 100 * low, 100 * high


def _edge(records: Sequence[GroupRecord]) -> float:
    """Where the image ends on both sides of 0: it shows every gain, if not all of its interval."""
    gains = [abs(_ends(record)[0]) for record in records]
    reaches = [max(map(abs, _ends(record))) for record in records]
    far = _FAR * median(reaches)
    return 1.1 * max(*gains, *(reach for reach in reaches if reach <= far)) or 1.0


def _row(axis: Any, record: GroupRecord, place: int, edge: float) -> None:
    """A dot on its interval, with an arrow where that goes on beyond the edge."""
    gain, low, high = _ends(record)
    if low < high:
        axis.plot([max(low, -edge), min(high, edge)], [place, place], color=BLUE, lw=1)
    axis.plot([gain], [place], color=BLUE, marker="o", ms=3, ls="none")
    for beyond, at, marker in ((low < -edge, -edge, "<"), (high > edge, edge, ">")):
        if beyond:
            axis.plot([at], [place], color=BLUE, marker=marker, ms=4, ls="none", clip_on=False)
