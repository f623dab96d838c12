"""The figure behind a verdict: the observed heads and their references."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from attnaudit.records.audit import AuditRun, ReferenceWords
from attnaudit.records.head_table import head_table
from attnaudit.records.schema import OBSERVED, Role
from attnaudit.report.drawing import BLUE, GREEN, VERMILION, drawing

#: One measure for each kind of question; all have power for identifiable heads.
MEASURES = ("column_cosine_matched", "subspace_overlap", "eigenvector_residual")
_MOST_DOTS = 500


_COLOURS = {"observed": VERMILION, "negative": BLUE, "positive": GREEN}
_KINDS = {Role.NULL: "negative", Role.IDEAL: "positive"}


def reference_kinds(references: Mapping[str, ReferenceWords]) -> dict[str, str]:
    """The rows of a figure in order: observed heads, negative references (nulls), positive ones (ideals)."""
    kinds = {name: _KINDS[words.role] for name, words in references.items()}
    return {OBSERVED: "observed", **dict(sorted(kinds.items(), key=lambda kind: kind[1]))}


def reference_figure(run: AuditRun, path: Path) -> None:
    """A row per reference, a dot per head (at most about 500), the mean as a bar; a panel per measure and model."""
    models, kinds = run.models, reference_kinds(run.summary.references)
    generator = np.random.default_rng(0)
    with drawing([path], len(models), len(MEASURES), (7.2, 0.5 + 1.9 * len(models))) as axes:
        for row, model in enumerate(models):
            for column, measure in enumerate(MEASURES):
                axis = axes[row, column]
                table = head_table(run.rows, model, measure, "kpca").references
                names = [name for name in kinds if name in table]
                for place, name in enumerate(names):
                    values = table[name][np.isfinite(table[name])]
                    if not len(values):
                        continue
                    colour = _COLOURS[kinds[name]]
                    dots = values[:: max(1, len(values) // _MOST_DOTS)]
                    height = place + generator.uniform(-0.3, 0.3, len(dots))
                    axis.scatter(dots, height, s=2, color=colour, alpha=0.25, linewidths=0, rasterized=True)
                    axis.plot([values.mean()] * 2, [place - 0.38, place + 0.38], color="black", lw=1.5)
                labels = [name.replace("_", " ") for name in names] if column == 0 else []
                axis.set_yticks(range(len(names)), labels or [""] * len(names))
                axis.invert_yaxis()
                axis.set_xlabel(measure.replace("_", " "))
            axes[row, 0].set_title(model, loc="left")
