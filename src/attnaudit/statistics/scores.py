"""Scores: where does the observed head lie between a network that knows nothing of the theory (0) and the theory (1)?

Per head and input, in the measure's own direction,

    score    = (observed - null) / (planted - null),
    reach    = (best projection - null) / (planted - null),
    realised = (observed - null) / (best projection - null).

The null is the mean over repeats of `random_projection`, or of `rotated` where the inputs of layers are not known. So
what a measure says of a head that knows nothing, and of one for which the theory is exactly true, is taken from the
same head and input. A row in which planted values are no closer than the null is uninformative, and counted.

A head has one projection for all inputs, and so has every repeat of the null: that one of them is better than another
by chance does not go away with more inputs. The spread over repeats, pooled over heads, is therefore part of every
interval. Since score = 1 - (planted - observed) / (planted - null), a null that is off by e changes a score of x by
(1 - x)e, and chance has no more to give to a head that is near the theory: its part in the error of x is (1 - x)e.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from attnaudit import defaults
from attnaudit.errors import UsageError
from attnaudit.measures import REFERENCES, Measure, Reference
from attnaudit.measures.references.best_projection import BEST_PROJECTION, BEST_PROJECTION_FITTED
from attnaudit.measures.references.planted import NOISES, PLANTED_WITH_NOISE
from attnaudit.measures.references.reparametrised import REPARAMETRISED, REPARAMETRISED_NULL
from attnaudit.records.head_values import HeadTable, Numbers
from attnaudit.records.schema import OBSERVED, Role
from attnaudit.records.verdict import HeadScore, LayerScore, MeanEstimate, Score
from attnaudit.statistics.huge import mean, shrinkage
from attnaudit.statistics.intervals import CONFIDENCE
from attnaudit.statistics.means import Offset, discoveries, mean_interval, probability_above
from attnaudit.statistics.rows import Rows, grouped


@dataclass(frozen=True)
class Bounds:
    """What counts as the theory (`threshold`) and as chance (up to `chance`), and the confidence of intervals.

    Of the heads that are named, a share of `false_discoveries` at most is named wrongly.
    """

    threshold: float = defaults.THRESHOLD
    chance: float = defaults.CHANCE
    level: float = CONFIDENCE
    false_discoveries: float = 1 - CONFIDENCE

    def __post_init__(self) -> None:
        for name in ("threshold", "chance"):
            if not isinstance(getattr(self, name), (int, float)):
                raise UsageError(f"{name} must be a number, got {getattr(self, name)!r}.")
        if not 0 <= self.chance < self.threshold <= 1:
            raise UsageError(
                f"chance must be below threshold, and both between 0 and 1, got {self.chance:g} and {self.threshold:g}."
            )


def head_score(
    table: HeadTable,
    measure: Measure,
    bounds: Bounds | None = None,
    references: Mapping[str, Reference] = REFERENCES,
) -> Score:
    """The score of a measure over all heads, over inputs for each head, and what a network could reach.

    `references` says what the columns of the table are for. Of several nulls or ideals the first counts.
    """
    bounds = bounds or Bounds()
    columns = _Columns.of(table, -1.0 if measure.closer == "lower" else 1.0)
    null_name, ideal_name = (columns.first(references, role) for role in (Role.NULL, Role.IDEAL))
    observed, planted, null = (columns[name or ""] for name in (OBSERVED, ideal_name, null_name))
    known = np.isfinite(observed) & np.isfinite(planted) & np.isfinite(null)
    contrast = np.where(known, planted - null, np.nan)
    informative = known & (contrast > 0)
    missing = Score(
        measure.name,
        uninformative=int((known & ~informative).sum()),
        rejected=int((~known).sum()),
        unidentifiable=table.unidentifiable,
        impossible=table.impossible,
        null=null_name,
    )
    if null_name is None or not informative.any():
        return missing
    rows = Rows(table.inputs[informative], table.heads[informative], bounds.level)

    def scored(values: Numbers) -> Numbers:
        with np.errstate(over="ignore"):
            found: Numbers = ((values[informative].T - null[informative]) / contrast[informative]).T
        return found

    scores, offset = scored(observed), rows.offset(scored(columns.repeats(null_name)))
    ceilings = (BEST_PROJECTION.name, BEST_PROJECTION_FITTED.name) if measure.has_ceiling else ("", "")
    reach, fitted = (scored(columns[name]) for name in ceilings)
    reached, refined = np.isfinite(reach), np.isfinite(fitted)  # some inputs only
    return replace(
        missing,
        score=rows.estimate(scores, offset and rows.offset_of_mean(offset, scores)),
        reach=rows.among(reached).estimate(reach[reached]),
        fitted_reach=rows.among(refined).estimate(fitted[refined]),
        realised=rows.among(reached).ratio(scores[reached], reach[reached]),
        tolerance=_tolerance(scored(columns.repeats(PLANTED_WITH_NOISE.name)), bounds.threshold),
        gauges=_range(
            columns.repeats(REPARAMETRISED.name)[informative],
            columns.repeats(REPARAMETRISED_NULL.name)[informative],
            planted[informative, None],
        ),
        inputs=len(np.unique(rows.inputs)),
        heads=_heads(table, rows, scores, offset, bounds),
        layers=tuple(_layers(table, rows, scores, offset)),
        informative=int(informative.sum()),
        means=columns.means(informative),
    )


@dataclass(frozen=True)
class _Columns:
    """The columns of a table, higher being closer to the theory; made smaller if differences could overflow."""

    table: HeadTable
    factor: float

    @staticmethod
    def of(table: HeadTable, sign: float) -> _Columns:
        return _Columns(table, sign * shrinkage(*table.references.values()))

    def __getitem__(self, name: str) -> Numbers:
        """The means over repeats of a reference; NaN if there is none of that name."""
        own = self.table.references.get(name)
        return np.full(len(self.table), np.nan) if own is None else self.factor * own

    def repeats(self, name: str) -> Numbers:
        """The same with a column for every repeat."""
        own = self.table.repeats.get(name)
        return np.full((len(self.table), 1), np.nan) if own is None else self.factor * own

    def first(self, references: Mapping[str, Reference], role: Role) -> str | None:
        """The first reference of a role that has a number."""
        named = (name for name, reference in references.items() if reference.role is role)
        return next((name for name in named if np.isfinite(self[name]).any()), None)

    def means(self, rows: NDArray[np.bool_]) -> dict[str, float]:
        """The measure itself, by reference, where these rows have it."""
        found = {name: self[name][rows] for name in self.table.references}
        found = {name: own[np.isfinite(own)] for name, own in found.items()}
        return {name: mean(own) / self.factor for name, own in found.items() if len(own)}


def _tolerance(curve: Numbers, threshold: float) -> float | None:
    """The share of noise at which the mean score of planted values falls below the threshold, between measured ones."""
    measured = curve[np.isfinite(curve).all(axis=1)]
    if curve.shape[1] != len(NOISES) or not len(measured):
        return None
    scores, noises = np.concatenate([[1.0], measured.mean(axis=0)]), (0.0, *NOISES)
    below = np.flatnonzero(scores < threshold)
    if not len(below):
        return NOISES[-1]
    last = int(below[0])
    share = (scores[last - 1] - threshold) / (scores[last - 1] - scores[last])
    return float(noises[last - 1] + share * (noises[last] - noises[last - 1]))


def _range(observed: Numbers, null: Numbers, planted: Numbers) -> tuple[float, float] | None:
    """The smallest and largest mean score of a column; None without rows that are informative in all of them."""
    scores = (observed - null) / np.where(planted > null, planted - null, np.nan)
    measured = scores[np.isfinite(scores).all(axis=1)]
    return (float(measured.mean(axis=0).min()), float(measured.mean(axis=0).max())) if len(measured) else None


def _heads(
    table: HeadTable, rows: Rows, scores: Numbers, offset: Offset | None, bounds: Bounds
) -> tuple[HeadScore, ...]:
    """Every head over its inputs; which satisfy the claim or are above chance, with false discoveries controlled."""
    found = {int(head): scores[rows.heads == head] for head in np.unique(rows.heads)}
    inputs = {head: rows.inputs[rows.heads == head] for head in found}
    means = {head: grouped(own, inputs[head]) for head, own in found.items()}
    satisfying, above = (
        discoveries(
            np.array([probability_above(own, bound, own_offset) for own in means.values()]), bounds.false_discoveries
        )
        for bound in (bounds.threshold, bounds.chance)
        for own_offset in [offset and offset.times(1 - bound)]
    )
    return tuple(
        HeadScore(
            *table.names[head],
            MeanEstimate(
                float(own.mean()), mean_interval(own, bounds.level, offset and offset.times(1 - float(own.mean())))
            ),
            bool(satisfies),
            bool(better),
        )
        for (head, own), satisfies, better in zip(means.items(), satisfying, above, strict=True)
    )


def _layers(table: HeadTable, rows: Rows, scores: Numbers, offset: Offset | None) -> Iterator[LayerScore]:
    """Every layer over its heads and inputs."""
    layer_of_row = np.array([table.names[head].layer for head in rows.heads])
    for layer in np.unique(layer_of_row):
        own = layer_of_row == layer
        mine = rows.among(own)
        found = mine.estimate(scores[own], offset and mine.offset_of_mean(offset, scores[own]))
        if found is not None:
            yield LayerScore(int(layer), found)


def trial_score(measure: str, observed: Numbers, null: Numbers, planted: float, *, level: float) -> Score:
    """The same for repetitions of one measurement of which higher is closer."""
    base = float(null.mean())
    if planted <= base:
        return Score(measure, uninformative=len(observed), null="chance")
    scores = (observed - base) / (planted - base)
    return Score(
        measure,
        score=MeanEstimate(float(scores.mean()), mean_interval(scores, level)),
        inputs=len(scores),
        informative=len(scores),
        means={OBSERVED: float(observed.mean()), "chance": base, "planted": planted},
        null="chance",
    )
