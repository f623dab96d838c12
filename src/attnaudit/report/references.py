"""The figure behind a verdict: the observed heads and their references."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attnaudit.measures.references import BY_ROLE, Role
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.schema import OBSERVED
from attnaudit.report.drawing import BLUE, GREEN, VERMILION, drawing

#: One measure for each kind of question; all have power for identifiable heads.
MEASURES = ("column_cosine_matched", "subspace_overlap", "eigenvector_residual")
_MOST_DOTS = 500


def reference_figure(rows: Evidence, models: Sequence[str], path: Path) -> None:
    """A row per reference, a dot per head (at most about 500), the mean as a bar; a panel per measure and model."""
    generator = np.random.default_rng(0)
    with drawing([path], len(models), len(MEASURES), (7.2, 0.5 + 1.9 * len(models))) as axes:
        for row, model in enumerate(models):
            for column, measure in enumerate(MEASURES):
                axis = axes[row, column]
                table = head_table(rows, model, measure, "kpca").references
                names = [name for name in (OBSERVED, *BY_ROLE[Role.NULL], *BY_ROLE[Role.IDEAL]) if name in table]
                for place, name in enumerate(names):
                    values = table[name][np.isfinite(table[name])]
                    if not len(values):
                        continue
                    colour = {OBSERVED: VERMILION, "planted": GREEN}.get(name, BLUE)
                    dots = values[:: max(1, len(values) // _MOST_DOTS)]
                    height = place + generator.uniform(-0.3, 0.3, len(dots))
                    axis.scatter(dots, height, s=2, color=colour, alpha=0.25, linewidths=0, rasterized=True)
                    axis.plot([values.mean()] * 2, [place - 0.38, place + 0.38], color="black", lw=1.5)
                labels = [name.replace("_", " ") for name in names] if column == 0 else []
                axis.set_yticks(range(len(names)), labels or [""] * len(names))
                axis.invert_yaxis()
                axis.set_xlabel(measure.replace("_", " "))
            axes[row, 0].set_title(model, loc="left")
