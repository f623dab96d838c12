"""Confidence intervals: over inputs by resampling, over a few repetitions by Student's t, of a share by Wilson."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy import special

from attnaudit.statistics.huge import shrinkage

CONFIDENCE = 0.95
_RESAMPLES = 10_000
#: Numbers that differ by a smaller part of themselves are equal.
_ROUNDING = 1e-9
#: Indices held in memory at a time.
_DRAWN_AT_ONCE = 200_000

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]


def bootstrap_interval(means: Numbers, seed: int, level: float = CONFIDENCE) -> tuple[float, float] | None:
    """Percentile interval of the mean under resampling of inputs; None for a single input."""
    return bootstrap_intervals([means], seed, level)[0]


def bootstrap_intervals(
    samples: Sequence[Numbers], seed: int, level: float = CONFIDENCE
) -> list[tuple[float, float] | None]:
    """The same for several samples, each as if it were alone; draws are made once for all samples of one size."""
    found: list[tuple[float, float] | None] = [None] * len(samples)
    for size in {len(means) for means in samples if len(means) > 1}:
        places = [place for place, means in enumerate(samples) if len(means) == size]
        factors = [shrinkage(samples[place]) for place in places]
        shrunk = [samples[place] * factor for place, factor in zip(places, factors, strict=True)]
        values: list[list[Numbers]] = [[] for _ in places]
        for drawn in _draws([size], seed, _RESAMPLES):
            buffer = np.empty(drawn.shape)
            for own, means in zip(values, shrunk, strict=True):
                own.append(np.take(means, drawn, out=buffer, mode="clip").mean(axis=1))  # without mode, a copy is made
        for place, factor, own in zip(places, factors, values, strict=True):
            low, high = _percentiles(np.concatenate(own), level)
            found[place] = low / factor, high / factor
    return found


def bootstrap(
    statistic: Callable[[Indices], Numbers],
    groups: Sequence[int],
    seed: int,
    *,
    level: float = CONFIDENCE,
    resamples: int = _RESAMPLES,
) -> tuple[float, float]:
    """Percentile interval of a statistic under resampling with replacement (Efron 1979).

    Args:
        statistic: from indices, one row per resample, to one value per row; NaN is left out.
        groups: how many units each group has; every group is resampled on its own.
        seed: of the resampling.
        level: confidence of the interval.
        resamples: how many there are.
    """
    return _percentiles(np.concatenate([statistic(drawn) for drawn in _draws(groups, seed, resamples)]), level)


def _draws(groups: Sequence[int], seed: int, resamples: int) -> Iterator[Indices]:
    """Indices of resampled units, one row per resample, some rows at a time."""
    generator = np.random.default_rng(seed)
    low, high = _bounds(groups)
    units = sum(groups)
    for size in _portions(resamples, _DRAWN_AT_ONCE // units or 1):
        yield generator.integers(low, high, size=(size, units))


def _percentiles(values: Numbers, level: float) -> tuple[float, float]:
    lower, upper = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)


def _bounds(groups: Sequence[int]) -> tuple[int | Indices, int | Indices]:
    """Where the indices of every unit's group begin and end; one group needs no arrays, and is drawn twice as fast."""
    if len(groups) == 1:
        return 0, groups[0]
    sizes = np.array(groups, dtype=np.int64)
    ends = np.cumsum(sizes)
    return np.repeat(ends - sizes, sizes), np.repeat(ends, sizes)


def _portions(total: int, size: int) -> Iterator[int]:
    """A number as a sum of portions; a generator's draws do not depend on how they are divided."""
    for start in range(0, total, size):
        yield min(size, total - start)


def student_interval(values: Numbers, level: float, coarseness: float = 0.0) -> tuple[float, float] | None:
    """Student's t for the mean of a few repetitions; None for fewer than two.

    `coarseness` is a lower bound of the standard deviation: counts that happen to be equal are not known exactly. None
    also for numbers that are all equal while no such bound is known: that they do not differ does not make them exact.
    """
    if len(values) < 2:
        return None
    deviation = max(float(values.std(ddof=1)), coarseness)
    if deviation <= _ROUNDING * float(np.abs(values).max()):
        return None
    reach = float(special.stdtrit(len(values) - 1, (1 + level) / 2)) * deviation / len(values) ** 0.5
    return float(values.mean()) - reach, float(values.mean()) + reach


def share_coarseness(examples: int | None) -> float:
    """Standard deviation of a difference of two shares, each rounded to one example: Var = 2/12 examples⁻².

    That of a single share is smaller by √2. 0 if the number of examples is not known.
    """
    return 0.0 if examples is None else 1 / (6**0.5 * examples)


def wilson_interval(successes: int, trials: int, level: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's score interval (1927) of a share: the p with |p̂ - p| ≤ z√(p(1-p)/n); it has a width at 0 and 1 too."""
    if trials == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, spread = successes / trials, z * z / trials
    middle = share + spread / 2
    half = z * sqrt(share * (1 - share) / trials + spread / (4 * trials))
    low, high = ((middle + sign * half) / (1 + spread) for sign in (-1, 1))
    return (0.0 if successes == 0 else low), (1.0 if successes == trials else high)


def widened_level(tests: int) -> float:
    """Bonferroni: with this level all of `tests` intervals hold together with 95 % confidence."""
    return 1 - (1 - CONFIDENCE) / max(tests, 1)
