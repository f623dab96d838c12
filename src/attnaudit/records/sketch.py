"""The distribution of many numbers in few: counts in buckets whose width grows with the numbers.

A number x > 0 is in bucket ⌈log_γ x⌉ with γ = (1 + α)/(1 - α), and bucket i is shown by 2γⁱ/(γ + 1): so each quantile
is right up to a share α of itself, whatever the distribution (Masson, Rim & Lee 2019, DDSketch: a fast and
fully-mergeable quantile sketch with relative-error guarantees, PVLDB 12). Which numbers came first makes no difference.
Smallest and largest number are kept as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from attnaudit.records.head_values import Numbers

#: The largest relative error of a quantile: less than a dot is wide.
ERROR = 0.02
_GROWTH = (1 + ERROR) / (1 - ERROR)
_LOG = float(np.log(_GROWTH))
#: Numbers nearer to 0 than this count as 0.
_LEAST = 1e-12


@dataclass(frozen=True)
class OrderedValues:
    """Numbers from the smallest to the largest, all of them."""

    values: Numbers

    def evenly_ranked(self, number: int) -> Numbers:
        """At most `number` of them at evenly spaced ranks, including the smallest and the largest."""
        return self.values[_ranks(len(self.values), number)]


@dataclass(frozen=True)
class Sketch:
    """How many numbers are in each bucket, positive and negative ones apart, and how many are 0; lowest and highest."""

    low: float
    high: float
    zeros: int
    positive: Mapping[int, int]
    negative: Mapping[int, int]

    @staticmethod
    def of(values: Numbers) -> Sketch | None:
        """Of finite numbers; None without any."""
        if not len(values):
            return None
        positive, negative = (_buckets(own[own > _LEAST]) for own in (values, -values))
        zeros = int((np.abs(values) <= _LEAST).sum())
        return Sketch(float(values.min()), float(values.max()), zeros, positive, negative)

    def evenly_ranked(self, number: int) -> Numbers:
        """At most `number` of the numbers at evenly spaced ranks, the lowest and the highest as they are."""
        below, above = sorted(self.negative.items(), reverse=True), sorted(self.positive.items())
        shown = np.array([*(-_shown(i) for i, _ in below), 0.0, *(_shown(i) for i, _ in above)])
        counts = np.array([*(count for _, count in below), self.zeros, *(count for _, count in above)])
        ranks = _ranks(int(counts.sum()), number)
        found: Numbers = shown[np.searchsorted(np.cumsum(counts), ranks, side="right")].clip(self.low, self.high)
        found[0], found[-1] = self.low, self.high
        return found


def _ranks(count: int, number: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """At most `number` places among `count`, evenly spaced."""
    return np.arange(count) if count <= number else np.linspace(0, count - 1, number).round().astype(np.int64)


def _buckets(values: Numbers) -> dict[int, int]:
    found, counts = np.unique(np.ceil(np.log(values) / _LOG).astype(np.int64), return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _shown(bucket: int) -> float:
    return 2 * _GROWTH**bucket / (_GROWTH + 1)
