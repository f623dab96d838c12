"""Accuracy over ε, severity or the rate of noise, in print style."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from attnaudit.records.evaluation import Accuracy, ConditionKind, EvaluationSummary
from attnaudit.report.drawing import drawing, look
from attnaudit.report.robustness import models_of, with_short_names

_CORRUPTIONS = "corruptions"
#: Kinds that have a panel for each of their names, and what its axis is called.
_LABELS = {ConditionKind.ATTACK: "255 ε", ConditionKind.NOISE: "% of words"}


def accuracy_curves(summary: EvaluationSummary, paths: Sequence[Path]) -> bool:
    """A panel per attack or noise, a line per model, and one of the mean over corruptions; False if there is none."""
    summary = with_short_names(summary)
    models = models_of(summary)
    panels = list(dict.fromkeys(e.condition.name for e in summary.accuracies if e.condition.kind in _LABELS))
    kind = ConditionKind.ATTACK if summary.examples == "images" else ConditionKind.NOISE
    if any(entry.condition.kind is ConditionKind.CORRUPTION for entry in summary.accuracies):
        panels.append(_CORRUPTIONS)
    if not panels:
        return False
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    names = -(-len(models) // 3)
    with drawing(paths, rows, columns, (max(3.4, 2.3 * columns), 0.4 + 0.13 * names + 2.0 * rows)) as axes:
        for place, axis in enumerate(axes.flat):
            if place >= len(panels):
                axis.set_visible(False)
                continue
            for number, model in enumerate(models):
                _curve(axis, summary, model, panels[place], **look(number))
            axis.set(ylim=(-0.02, 1.02), title=panels[place])
            axis.set_xlabel("severity" if panels[place] == _CORRUPTIONS else _LABELS[kind])
            if place % columns == 0:
                axis.set_ylabel(summary.quantities[0].words)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        axes.flat[0].figure.legend(handles, labels, loc="outside upper center", ncols=min(len(models), 3))
    return True


def _curve(axis: Any, summary: EvaluationSummary, model: str, panel: str, **style: Any) -> None:
    if panel == _CORRUPTIONS:
        entries = summary.of(model, ConditionKind.CORRUPTION)
        severities = sorted({entry.condition.strength for entry in entries})
        means = [fmean(e.accuracy for e in entries if e.condition.strength == severity) for severity in severities]
        axis.plot(severities, means, marker="o", ms=2.5, label=model, **style)
        axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)  # of one severity, too
        return
    entries = [*summary.of(model, ConditionKind.ATTACK), *summary.of(model, ConditionKind.NOISE)]
    own: list[Accuracy] = [entry for entry in entries if entry.condition.name == panel]
    shown = sorted([*summary.of(model, ConditionKind.CLEAN), *own], key=lambda entry: entry.condition.strength)
    factor = 100 if own[0].condition.kind is ConditionKind.NOISE else 255
    x = [entry.condition.strength * factor for entry in shown]
    axis.plot(x, [entry.accuracy for entry in shown], marker="o", ms=2.5, label=model, **style)
    low, high = zip(*(entry.interval or (entry.accuracy,) * 2 for entry in shown), strict=True)
    axis.fill_between(x, low, high, color=style["color"], alpha=0.15, lw=0)
