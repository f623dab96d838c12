"""How attentions hold as corruption and attack grow stronger, as an image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnaudit.records.evaluation import ConditionKind
from attnaudit.report.drawing import drawing, look
from attnaudit.report.robust_curves import HoldingRecord

_NAMES = {
    ConditionKind.CORRUPTION: ("mean over corruptions", "severity"),
    ConditionKind.ATTACK: ("under the strongest attack", "255 ε"),
}
#: Of the legend: names of recipes are long.
_COLUMNS = 3


def holding_figure(records: Sequence[HoldingRecord], paths: Sequence[Path]) -> None:
    """A panel per kind, a line per recipe, with the interval over seeds as a bar at every point."""
    recipes = list(dict.fromkeys(record.recipe for record in records))
    kinds = [kind for kind in _NAMES if any(record.kind == kind for record in records)]
    with drawing(paths, 1, len(kinds), (3.4 * len(kinds), 2.4 + 0.14 * -(-len(recipes) // _COLUMNS))) as axes:
        for axis, kind in zip(axes[0], kinds, strict=True):
            unit = 255 if kind is ConditionKind.ATTACK else 1
            for place, recipe in enumerate(recipes):
                own = [record for record in records if (record.recipe, record.kind) == (recipe, kind)]
                at = [unit * record.strength for record in own]
                axis.plot(
                    at, [100 * record.accuracy for record in own], marker="o", ms=2.5, label=recipe, **look(place)
                )
                for x, record in zip(at, own, strict=True):
                    if record.low is not None and record.high is not None:
                        axis.plot([x, x], [100 * record.low, 100 * record.high], color=look(place)["color"], lw=0.6)
            title, label = _NAMES[kind]
            axis.set(title=title, xlabel=label, ylim=(0, 100))
        axes[0, 0].set_ylabel("accuracy in %, mean over seeds")
        every = axes[0, 0].get_legend_handles_labels()  # each panel has each recipe, if only as an empty line
        axes[0, 0].figure.legend(*every, loc="outside upper center", ncols=_COLUMNS)
