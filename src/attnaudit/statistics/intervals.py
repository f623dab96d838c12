"""Confidence intervals of a mean: over inputs by resampling, over a handful of repetitions by Student's t."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import stats

CONFIDENCE = 0.95
_RESAMPLES = 10_000
#: Draws held at a time: the number of all grows with the number of inputs.
_DRAWN_AT_ONCE = 200_000

Numbers = NDArray[np.float64]


def bootstrap_interval(means: Numbers, seed: int, level: float = CONFIDENCE) -> tuple[float, float] | None:
    """Percentile interval of the mean under resampling of inputs; None for a single input."""
    if len(means) < 2:
        return None
    generator = np.random.default_rng(seed)
    resampled = np.concatenate(
        [
            means[generator.integers(len(means), size=(size, len(means)))].mean(axis=1)
            for size in _portions(_RESAMPLES, _DRAWN_AT_ONCE // len(means) or 1)
        ]
    )
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _portions(total: int, size: int) -> Iterator[int]:
    """A number as a sum of portions; a generator's draws are the same however they are portioned."""
    for start in range(0, total, size):
        yield min(size, total - start)


def student_interval(values: Numbers, level: float, coarseness: float = 0.0) -> tuple[float, float] | None:
    """Student's t for the mean of a handful of repetitions; None for fewer than two.

    `coarseness` is the least deviation to reckon with: counts that happen to be equal are not known exactly.
    """
    if len(values) < 2:
        return None
    deviation = max(float(values.std(ddof=1)), coarseness)
    reach = float(stats.t.ppf((1 + level) / 2, len(values) - 1)) * deviation / len(values) ** 0.5
    return float(values.mean()) - reach, float(values.mean()) + reach


def widened_level(tests: int) -> float:
    """Bonferroni: with this level all of `tests` intervals hold together with 95 % confidence."""
    return 1 - (1 - CONFIDENCE) / max(tests, 1)
