"""The figure behind a verdict: the observed heads and their references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from attnaudit.records.audit import AuditRun
from attnaudit.records.audit_summary import ReferenceWords
from attnaudit.records.grouped_rows import Group
from attnaudit.records.measured_heads import Distributions
from attnaudit.records.schema import OBSERVED, Role
from attnaudit.report.drawing import BLUE, GREEN, GREY, VERMILION, YELLOW, drawing

#: One measure for each kind of question; all recognise planted values even with noise.
MEASURES = ("column_cosine_matched", "value_subspace_overlap", "procrustes")
_MOST_DOTS = 500
#: What a figure shows unless a theorem leaves nothing to show.
_FIRST = "kpca"


_COLOURS = {"observed": VERMILION, "null": BLUE, "ceiling": YELLOW, "ideal": GREEN, "context": GREY}


def reference_kinds(references: Mapping[str, ReferenceWords]) -> dict[str, str]:
    """The rows of a figure in order: observed heads, nulls, ceilings, ideals, and what is shown beside them.

    References of a sample of inputs have no row: they say how much a score can be trusted.
    """
    kinds = {name: words.role.value for name, words in references.items() if words.role is not Role.SENSITIVITY}
    order = list(_COLOURS)
    return {OBSERVED: "observed", **dict(sorted(kinds.items(), key=lambda kind: order.index(kind[1])))}


def reference_figure(run: AuditRun, path: Path) -> bool:
    """A row per reference, a dot per head and input (at most 500), the mean as a bar; False if there is no dot.

    There is a panel per measure and model; models without any number have none.
    """
    kinds, scored = reference_kinds(run.summary.references), {model: _scored(run, model) for model in run.models}
    models = [model for model, (_, tables) in scored.items() if any(map(_has_numbers, tables))]
    if not models:
        return False
    generator = np.random.default_rng(0)
    with drawing([path], len(models), len(MEASURES), (7.2, 0.6 + 2.0 * len(models))) as axes:
        for row, model in enumerate(models):
            theory, tables = scored[model]
            # All panels of a model have the same rows, because only the first one names them.
            names = [name for name in kinds if any(name in table.references for table in tables)]
            for column, (measure, table) in enumerate(zip(MEASURES, tables, strict=True)):
                axis = axes[row, column]
                for place, name in enumerate(names):
                    own = table.references.get(name)
                    if own is None or own.mean is None:
                        continue
                    colour, dots = _COLOURS[kinds[name]], own.evenly_ranked(_MOST_DOTS)
                    height = place + generator.uniform(-0.3, 0.3, len(dots))
                    axis.scatter(dots, height, s=2, color=colour, alpha=0.25, linewidths=0, rasterized=True)
                    axis.plot([own.mean] * 2, [place - 0.38, place + 0.38], color="black", lw=1.5)
                labels = [_label(name, tables) for name in names] if column == 0 else []
                axis.set_yticks(range(len(names)), labels or [""] * len(names))
                axis.set_ylim(len(names) - 0.5, -0.5)
                axis.set_xlabel(_directed(measure, run))
                axis.locator_params(axis="x", nbins=3)  # so that numbers of neighbouring panels stay apart
            axes[row, 0].set_title(f"{model}, {theory}" if theory != _FIRST else model, loc="left")
    return True


def _has_numbers(table: Distributions) -> bool:
    return any(own.counted for own in table.references.values())


def _directed(measure: str, run: AuditRun) -> str:
    """The title of an axis: the measure, and which end of it is closer to the claim."""
    words, known = measure.replace("_", " "), run.summary.measures.get(measure)
    arrows = {"higher": f"{words}\nbetter →", "lower": f"{words}\n← better"}
    return arrows.get(known.closer, words) if known else words


def _scored(run: AuditRun, model: str) -> tuple[str, list[Distributions]]:
    """The first theory that is not excluded by a theorem for all heads, and the tables of its measures."""
    theories = run.settings.identity.settings.theories or (_FIRST,)
    for theory in theories:
        tables = [run.heads.distributions(Group(model, theory, measure)) for measure in MEASURES]
        if any(table.heads for table in tables):
            return theory, tables
    return _FIRST, [run.heads.distributions(Group(model, _FIRST, measure)) for measure in MEASURES]


def _label(name: str, tables: Sequence[Distributions]) -> str:
    """The words for a reference, with the number of inputs if it was not measured on all of them."""
    words = name.replace("_", " ")
    own = max(table.references[name].inputs for table in tables if name in table.references)
    every = max(table.references[OBSERVED].inputs for table in tables if OBSERVED in table.references)
    return f"{words}, {own} input{'s' if own > 1 else ''}" if 0 < own < every else words
