"""Means and ratios of numbers that belong to inputs and heads, with intervals over inputs."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from attnaudit.records.head_values import Numbers
from attnaudit.records.verdict import MeanEstimate
from attnaudit.statistics.huge import mean
from attnaudit.statistics.means import Offset, mean_interval


@dataclass(frozen=True)
class Rows:
    """Rows of numbers, by input and head, and the confidence of what is estimated from them."""

    inputs: NDArray[np.int64]
    heads: NDArray[np.int64]
    level: float

    def by_input(self, values: Numbers) -> Numbers:
        """The mean over the heads of every input."""
        return grouped(values, self.inputs)

    def among(self, rows: NDArray[np.bool_]) -> Rows:
        """Some of the rows."""
        return Rows(self.inputs[rows], self.heads[rows], self.level)

    def estimate(self, values: Numbers, offset: Offset | None = None) -> MeanEstimate | None:
        """The mean over inputs; None unless every row has a number."""
        if not len(values) or not np.isfinite(values).all():
            return None
        means = self.by_input(values)
        return MeanEstimate(mean(means), mean_interval(means, self.level, offset))

    def ratio(self, above: Numbers, below: Numbers) -> MeanEstimate | None:
        """A ratio of means, with the interval of its linearisation; None unless the denominator is above 0."""
        if not len(below):
            return None
        over, under = self.by_input(above), self.by_input(below)
        found = mean_interval(under, self.level)
        if found is None or found[0] <= 0:
            return None
        ratio = float(over.mean() / under.mean())
        ends = mean_interval((over - ratio * under) / under.mean(), self.level)
        return MeanEstimate(ratio, None if ends is None else (ratio + ends[0], ratio + ends[1]))

    def offset(self, draws: Numbers) -> Offset | None:
        """How far one projection is from the mean of several by chance: s√(1 + 1/R), s pooled over heads."""
        repeats = draws.shape[1]
        if repeats < 2 or not np.isfinite(draws).all():
            return None
        means = np.stack([grouped(column, self.heads) for column in draws.T])
        variance = float(means.var(axis=0, ddof=1).mean())
        return Offset(sqrt(variance * (1 + 1 / repeats)), means.shape[1] * (repeats - 1))

    def offset_of_mean(self, offset: Offset, scores: Numbers) -> Offset:
        """The error that chance leaves in the mean over heads, of which each has a share 1 - x."""
        shares = 1 - grouped(scores, self.heads)
        return offset.times(float(np.sqrt(np.square(shares).sum())) / len(shares))


def grouped(values: Numbers, groups: NDArray[np.int64]) -> Numbers:
    """The mean of every group, in order."""
    _, places = np.unique(groups, return_inverse=True)
    means: Numbers = np.bincount(places, weights=values) / np.bincount(places)
    return means
