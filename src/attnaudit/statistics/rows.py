"""Means and ratios of numbers that belong to inputs and heads, as intervals over inputs need them."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from attnaudit.records.head_values import Numbers
from attnaudit.records.moments import Moments, Offset
from attnaudit.records.scored_heads import Average, RatioOfMeans


@dataclass(frozen=True)
class Rows:
    """Rows of numbers, by input and head."""

    inputs: NDArray[np.int64]
    heads: NDArray[np.int64]

    def among(self, rows: NDArray[np.bool_]) -> Rows:
        """Some of the rows."""
        return Rows(self.inputs[rows], self.heads[rows])

    def by_input(self, values: Numbers) -> Moments | None:
        """Of the means over the heads of every input; None unless there are rows and all have a number."""
        if not len(values) or not np.isfinite(values).all():
            return None
        return Moments.of(grouped(values, self.inputs))

    def average(self, scores: Numbers) -> Average | None:
        """The same of scores, with the error that chance leaves in their mean: each head has a share 1 - x of it."""
        inputs, shares = self.by_input(scores), 1 - grouped(scores, self.heads)
        return None if inputs is None else Average(inputs, float(np.sqrt(np.square(shares).sum())) / len(shares))

    def ratio(self, above: Numbers, below: Numbers) -> RatioOfMeans | None:
        """A ratio of means over inputs; None unless the denominator is above 0."""
        if not len(below):
            return None
        over, under = grouped(above, self.inputs), grouped(below, self.inputs)
        if not under.mean() > 0:
            return None
        ratio = float(over.mean() / under.mean())
        return RatioOfMeans(ratio, Moments.of(under), Moments.of((over - ratio * under) / under.mean()))

    def offset(self, draws: Numbers) -> Offset | None:
        """How far one projection is from the mean of several by chance: s√(1 + 1/R), s pooled over heads.

        Draws without a number are left out: of every row that has two at least, they are taken from the mean of the row
        first, so that rows which lack a draw do not make it another. R is the mean over heads.
        """
        several = np.isfinite(draws).sum(axis=1) > 1
        found = []
        for head in np.unique(self.heads):
            own = draws[several & (self.heads == head)]
            own = own - np.nanmean(own, axis=1, keepdims=True)
            counts = np.isfinite(own).sum(axis=0)
            means = np.nansum(own, axis=0)[counts > 0] / counts[counts > 0]
            if len(means) > 1:
                found.append((means.var(ddof=1), len(means)))
        if not found:
            return None
        variances, repeats = np.array(found).T
        variance = np.average(variances, weights=repeats - 1)
        return Offset(sqrt(variance * (1 + 1 / repeats.mean())), int((repeats - 1).sum()))


def grouped(values: Numbers, groups: NDArray[np.int64]) -> Numbers:
    """The mean of every group, in order."""
    _, places = np.unique(groups, return_inverse=True)
    means: Numbers = np.bincount(places, weights=values) / np.bincount(places)
    return means
