"""What intervals of a mean need to know of the numbers it is the mean of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnaudit.records.head_values import Numbers

#: The cubes of larger numbers are beyond float64.
_HUGE = 1e100


@dataclass(frozen=True)
class Moments:
    """How many numbers there are, their mean, standard deviation (0 for a single one) and skewness."""

    count: int
    mean: float
    deviation: float
    skewness: float

    @staticmethod
    def of(values: Numbers) -> Moments:
        """Those of at least one number."""
        largest = float(np.abs(values).max())
        unit = largest if largest > _HUGE else 1.0
        own = values / unit
        mean, spread = float(own.mean()), float(own.std())
        skewness = float(((own - mean) ** 3).mean()) / spread**3 if spread > 0 else 0.0
        deviation = float(own.std(ddof=1)) * unit if len(own) > 1 else 0.0
        return Moments(len(values), mean * unit, deviation, skewness)


@dataclass(frozen=True)
class Offset:
    """An error that all values share, which more of them do not reduce: its deviation, and degrees of freedom."""

    deviation: float
    freedom: int

    def times(self, factor: float) -> Offset:
        """The error of what is changed by so much of it."""
        return Offset(self.deviation * abs(factor), self.freedom)
