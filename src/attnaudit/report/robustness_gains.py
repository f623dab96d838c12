"""What attentions gain over symmetric attention, condition by condition, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnaudit.claims.robust_table import GroupRecord
from attnaudit.report.drawing import BLUE, drawing


def gains_figure(records: Sequence[GroupRecord], paths: Sequence[Path]) -> None:
    """A panel per condition, a row per recipe: the gain in points with its interval over seeds; one gain at least."""
    compared = [record for record in records if record.gain is not None]
    recipes = list(dict.fromkeys(record.recipe for record in compared))
    conditions = list(dict.fromkeys(record.condition for record in compared))
    places = {recipe: len(recipes) - 1 - place for place, recipe in enumerate(recipes)}
    with drawing(paths, 1, len(conditions), (1.6 + 1.5 * len(conditions), 0.9 + 0.2 * len(recipes))) as axes:
        for axis, condition in zip(axes[0], conditions, strict=True):
            axis.axvline(0, color="0.5", lw=0.8)
            for record in (record for record in compared if record.condition == condition):
                place = places[record.recipe]
                if record.gain_low is not None and record.gain_high is not None:
                    axis.plot([100 * record.gain_low, 100 * record.gain_high], [place, place], color=BLUE, lw=1)
                axis.plot([100 * (record.gain or 0.0)], [place], color=BLUE, marker="o", ms=3, ls="none")
            axis.set(title=condition, yticks=[], ylim=(-0.7, len(recipes) - 0.3))
        axes[0, 0].set_yticks(list(places.values()), list(places))
        axes[0, 0].figure.supxlabel("points over symmetric attention, 95 % over seeds", fontsize="small")
