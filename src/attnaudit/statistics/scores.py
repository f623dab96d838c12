"""Calibrated scores: where does the observed head lie between chance (0) and the theory (1)?

Per head and measure, in the measure's own direction,

    score = (observed - null) / (planted - null),

null being the best-scoring negative reference of that head (mean over its repeats). What a measure would say of noise
and of a head for which the theory is exactly true is thus taken from the same heads, and a measure that cannot tell the
two apart (AUC below 0.95) has no power and decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from attnaudit.measures import Measure
from attnaudit.measures.references import REFERENCES, Reference, Role
from attnaudit.records.head_values import HeadTable
from attnaudit.records.schema import OBSERVED
from attnaudit.records.verdict import Score
from attnaudit.statistics.areas import area_under_curve
from attnaudit.statistics.huge import mean, shrinkage
from attnaudit.statistics.intervals import Numbers, bootstrap_interval, student_interval


def head_score(
    table: HeadTable,
    measure: Measure,
    *,
    level: float,
    seed: int = 0,
    references: Mapping[str, Reference] = REFERENCES,
) -> Score:
    """The calibrated score of a measure over heads, with a bootstrap interval over inputs.

    `references` says which columns of the table are nulls and which are ideals.
    """
    sign = -1.0 if measure.closer == "lower" else 1.0
    present = [reference for name, reference in references.items() if name in table.references]
    negatives = [
        reference.name
        for reference in present
        if reference.role is Role.NULL and not (reference.network and measure.in_units_of_the_head)
    ]
    positive = next((reference.name for reference in present if reference.role is Role.IDEAL), None)
    missing = Score(measure.name, None, None, None, 0, len(table), table.unidentifiable)
    if not len(table) or not negatives or positive is None or OBSERVED not in table.references:
        return missing
    observed, planted = sign * table.references[OBSERVED], sign * table.references[positive]
    against = np.stack([sign * table.references[name] for name in negatives])
    usable = np.isfinite(observed) & np.isfinite(planted) & np.isfinite(against).any(axis=0)
    if not usable.any():
        return missing
    against = np.where(np.isfinite(against), against, -np.inf)[:, usable]
    factor = shrinkage(observed, planted, against)  # a difference of huge numbers may be beyond float64
    observed, planted, against = observed[usable] * factor, planted[usable] * factor, against * factor
    inputs, null = table.inputs[usable], against.max(axis=0)
    contrast = planted - null
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scores = np.where(contrast > 0, (observed - null) / contrast, np.nan)
    counted = np.isfinite(scores)
    means = np.array([mean(scores[counted & (inputs == i)]) for i in np.unique(inputs[counted])])
    commonest = np.bincount(against.argmax(axis=0), minlength=len(negatives)).argmax()
    return Score(
        measure=measure.name,
        mean=mean(means) if len(means) else None,
        interval=bootstrap_interval(means, seed, level) if len(means) else None,
        auc=area_under_curve(planted, null),
        heads=int(counted.sum()),
        rejected=len(table) - int(counted.sum()),
        unidentifiable=table.unidentifiable,
        observed=sign * float(observed.mean()) / factor,
        null=sign * float(null.mean()) / factor,
        null_name=negatives[int(commonest)],
        planted=sign * float(planted.mean()) / factor,
    )


def trial_score(measure: str, observed: Numbers, null: Numbers, planted: float, *, level: float) -> Score:
    """The same for repetitions of one measurement of which higher is closer; Student's t over repetitions.

    A handful of repetitions is too few for a bootstrap, whose intervals come out too narrow.
    """
    base = float(null.mean())
    scores = (observed - base) / (planted - base)
    return Score(
        measure=measure,
        mean=float(scores.mean()),
        interval=student_interval(scores, level),
        auc=area_under_curve(np.array([planted]), null),
        heads=len(scores),
        rejected=0,
        unidentifiable=0,
        observed=float(observed.mean()),
        null=base,
        null_name="chance",
        planted=planted,
    )
