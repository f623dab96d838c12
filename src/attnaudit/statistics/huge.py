"""Means and deviations of numbers of any size: where sums or squares are beyond float64, they are taken in parts.

Numbers of usual size give the very same bits as numpy.
"""

from __future__ import annotations

import numpy as np

from attnaudit.records.head_values import Numbers

#: Sums and differences of a few million numbers below this stay finite.
_LARGE = 2.0**1000
#: A power of two, so that nothing is rounded.
_SHRUNK = 2.0**-64


def shrinkage(*numbers: Numbers) -> float:
    """A factor that makes sums and differences of these numbers finite: 1, unless some are huge."""
    largest = max((float(np.abs(own[np.isfinite(own)]).max(initial=0.0)) for own in numbers), default=0.0)
    return _SHRUNK if largest > _LARGE else 1.0


def mean(numbers: Numbers) -> float:
    """The mean; finite for finite numbers."""
    factor = shrinkage(numbers)
    if factor == 1:
        return float(numbers.mean())
    with np.errstate(over="ignore"):  # by rounding, the mean of the largest numbers there are
        return float(np.clip((numbers * factor).mean() / factor, numbers.min(), numbers.max()))


def median(numbers: Numbers) -> float:
    """The median; finite for finite numbers."""
    factor = shrinkage(numbers)
    return float(np.median(numbers * factor) / factor) if factor < 1 else float(np.median(numbers))


def deviation(numbers: Numbers) -> float | None:
    """The standard deviation of a sample; None for fewer than two numbers, or if it is beyond float64 itself."""
    if len(numbers) < 2:
        return None
    largest = float(np.abs(numbers).max())
    if largest < 1e150:  # their squares are finite
        return float(numbers.std(ddof=1))
    with np.errstate(over="ignore"):
        found = float((numbers / largest).std(ddof=1) * largest)
    return found if np.isfinite(found) else None
