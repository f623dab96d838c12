"""Axes of a chart: from values to places, and the ticks between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: Values whose largest is this many times the smallest are drawn on a logarithmic scale.
_WIDE = 20.0
_TICKS = 5


@dataclass(frozen=True)
class Scale:
    """Maps the values from `low` to `high` to the places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value."""
        low, high, value = (math.log(x) if self.logarithmic else x for x in (self.low, self.high, value))
        share = 0.5 if high == low else (value - low) / (high - low)
        return round(self.start + share * (self.end - self.start), 1)

    @property
    def ticks(self) -> list[float]:
        """Round values inside the scale: powers of ten if it is logarithmic."""
        if not self.logarithmic:
            return _round_values(self.low, self.high)
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        every = max(1, -(-(last - first + 1) // _TICKS))
        powers = [10.0**power for power in range(first, last + 1, every)]
        return powers if len(powers) > 1 else [self.low, self.high]


def fitted_scale(values: Sequence[float], start: float, end: float, *, may_be_logarithmic: bool = False) -> Scale:
    """A scale on which all of the values fit, and are not all in one place."""
    low, high = min(values), max(values)
    if may_be_logarithmic and low > 0 and high / low > _WIDE:
        return Scale(low, high, start, end, logarithmic=True)
    if low == high:
        margin = abs(low) / 2 or 0.5
        low, high = low - margin, high + margin
    return Scale(low, high, start, end)


def _round_values(low: float, high: float) -> list[float]:
    step = 10.0 ** math.floor(math.log10((high - low) / _TICKS))
    step = next((step * factor for factor in (1, 2, 5) if (high - low) / (step * factor) <= _TICKS), step * 10)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]
