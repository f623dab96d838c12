"""A picture of the ranking: layers by theories, the score as colour; where a theory is at chance, nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attnaudit import defaults
from attnaudit.records.audit import AuditRun
from attnaudit.records.verdict import Rank
from attnaudit.report.drawing import drawing

#: A score above this one has dark paper under it, so that its number is white.
_DARK = 0.55


def theory_map(ranks: Sequence[Rank], chance: float) -> tuple[list[str], list[int], list[list[float | None]]]:
    """Theories, layers, and the score of each layer; None where its interval is not above chance."""
    layers = sorted({own.layer for entry in ranks for own in entry.layers})
    cells = []
    for entry in ranks:
        found = {own.layer: own.score.mean for own in entry.layers if own.above(chance)}
        cells.append([found.get(layer) for layer in layers])
    return [entry.theory for entry in ranks], layers, cells


def theory_figure(run: AuditRun, paths: Sequence[Path]) -> bool:
    """A panel per model; False, and no file, if every theory is at chance in every layer."""
    chance = defaults.CHANCE if run.summary.chance is None else run.summary.chance
    maps = {model: theory_map([entry for entry in run.ranking if entry.model == model], chance) for model in run.models}
    maps = {model: own for model, own in maps.items() if any(cell is not None for row in own[2] for cell in row)}
    if not maps:
        return False
    size = (7.2, sum(0.9 + 0.22 * len(theories) for theories, _, _ in maps.values()))
    with drawing(paths, len(maps), 1, size) as axes:
        for axis, (model, (theories, layers, cells)) in zip(axes[:, 0], maps.items(), strict=True):
            numbers = np.array([[np.nan if cell is None else cell for cell in row] for row in cells], dtype=np.float64)
            axis.imshow(np.ma.masked_invalid(numbers), cmap="Blues", vmin=0, vmax=1, aspect="auto")
            for (row, column), cell in np.ndenumerate(numbers):
                if np.isfinite(cell):
                    colour = "white" if cell > _DARK else "black"
                    axis.text(column, row, f"{cell:.2f}", ha="center", va="center", color=colour, fontsize=6)
            axis.set_yticks(range(len(theories)), theories)
            axis.set_xticks(range(len(layers)), [str(layer) for layer in layers])
            axis.set_xlabel("layer")
            axis.set_title(f"{model}: score by layer, 0 is chance and 1 the theory; empty at chance", loc="left")
    return True
