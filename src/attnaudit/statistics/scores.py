"""Scores with intervals: how sure is it where heads lie between a network that knows nothing (0) and the theory (1)?

A head has one projection for all inputs, and so has every repeat of the null: that one of them is better than another
by chance does not go away with more inputs. The spread over repeats, pooled over heads, is therefore part of every
interval. Since score = 1 - (planted - observed) / (planted - null), a null that is off by e changes a score of x by
(1 - x)e, and chance has no more to give to a head that is near the theory: its part in the error of x is (1 - x)e.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attnaudit import defaults
from attnaudit.errors import UsageError
from attnaudit.measures import REFERENCES, Measure, Reference
from attnaudit.measures.references.planted import NOISES
from attnaudit.records.head_values import HeadTable, Numbers
from attnaudit.records.moments import Moments, Offset
from attnaudit.records.schema import OBSERVED
from attnaudit.records.scored_heads import RatioOfMeans, ScoredHeads
from attnaudit.records.verdict import HeadScore, LayerScore, MeanEstimate, Score
from attnaudit.statistics.decisions import LEAST_INPUTS
from attnaudit.statistics.intervals import CONFIDENCE
from attnaudit.statistics.means import discoveries, mean_interval, moments_interval, probability_above
from attnaudit.statistics.scored_heads import scored_heads


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
    """The score of a measure from the rows of heads; see `scored_heads`."""
    return score_of(scored_heads(table, measure, references), measure.name, bounds or Bounds())


def score_of(found: ScoredHeads, measure: str, bounds: Bounds) -> Score:
    """The score of a measure over all heads, over inputs for each head, and what a network could reach."""

    def estimate(moments: Moments | None, share: float | None = None) -> MeanEstimate | None:
        """A mean with its interval, of which a `share` of the offset is part."""
        if moments is None:
            return None
        offset = None if found.offset is None or share is None else found.offset.times(share)
        return MeanEstimate(moments.mean, moments_interval(moments, bounds.level, offset))

    averages = {own.layer: estimate(own.average.inputs, own.average.share) for own in found.layers}
    return Score(
        measure,
        score=None if found.all is None else estimate(found.all.inputs, found.all.share),
        reach=estimate(found.reach),
        fitted_reach=estimate(found.fitted_reach),
        realised=None if found.realised is None else _ratio(found.realised, bounds.level),
        tolerance=_tolerance(found.noise, bounds.threshold),
        gauges=found.gauges,
        inputs=found.inputs,
        heads=_heads(found, bounds),
        layers=tuple(LayerScore(layer, own) for layer, own in averages.items() if own is not None),
        informative=found.informative,
        uninformative=found.uninformative,
        rejected=found.rejected,
        unidentifiable=found.unidentifiable,
        unscored=found.unscored,
        impossible=found.impossible,
        means=None if found.means is None else dict(found.means),
        null=found.null,
    )


def _ratio(found: RatioOfMeans, level: float) -> MeanEstimate | None:
    """A ratio with the interval of its linearisation; None unless the denominator is clearly above 0."""
    below, ends = moments_interval(found.below, level), moments_interval(found.linearised, level)
    if below is None or below[0] <= 0:
        return None
    return MeanEstimate(found.ratio, ends and (found.ratio + ends[0], found.ratio + ends[1]))


def _tolerance(noise: Sequence[float], threshold: float) -> float | None:
    """The share of noise at which the mean score of planted values falls below the threshold, between measured ones.

    None if noise was not tried, 0 if it was tried in vain.
    """
    if not noise:
        return None
    if not np.isfinite(noise).all():
        return 0.0
    scores, noises = (1.0, *noise), (0.0, *NOISES)
    last = next((place for place, score in enumerate(scores) if score < threshold), None)
    if last is None:
        return NOISES[-1]
    share = (scores[last - 1] - threshold) / (scores[last - 1] - scores[last])
    return noises[last - 1] + share * (noises[last] - noises[last - 1])


def _heads(found: ScoredHeads, bounds: Bounds) -> tuple[HeadScore, ...]:
    """Every head over its inputs; which satisfy the claim or are above chance, with false discoveries controlled."""
    satisfying, above = (
        discoveries(
            np.array([_probability_above(own.inputs, bound, offset) for own in found.heads]), bounds.false_discoveries
        )
        for bound in (bounds.threshold, bounds.chance)
        for offset in [found.offset and found.offset.times(1 - bound)]
    )

    def estimate(moments: Moments) -> MeanEstimate:
        offset = found.offset and found.offset.times(1 - moments.mean)
        return MeanEstimate(moments.mean, moments_interval(moments, bounds.level, offset))

    return tuple(
        HeadScore(*own.name, estimate(own.inputs), bool(satisfies), bool(better))
        for own, satisfies, better in zip(found.heads, satisfying, above, strict=True)
    )


def _probability_above(inputs: Moments, bound: float, offset: Offset | None) -> float:
    """One-sided p-value of a head; fewer inputs than a claim needs decide nothing of one head either."""
    return probability_above(inputs, bound, offset) if inputs.count >= LEAST_INPUTS else 1.0


def trial_score(measure: str, observed: Numbers, null: Numbers, planted: float, *, level: float) -> Score:
    """The same for repetitions of one measurement of which higher is closer."""
    if not np.isfinite([*observed, *null, planted]).all():
        return Score(measure, rejected=len(observed), null="chance")
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
