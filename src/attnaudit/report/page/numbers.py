"""Format numbers and text for the page: short, finite and escaped."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Significant digits: more than a figure shows, and a third of what float64 prints.
_DIGITS = 4
#: Characters that could end the element around the JSON, or a line in old JavaScript.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def compact(value: float | None) -> float | None:
    """The rounded number; None if it is not finite."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{_DIGITS - 1}e}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e6 else rounded


def compacted(values: NDArray[np.float64]) -> list[Any]:
    """`compact` for an array of any number of axes."""
    return [compacted(value) if isinstance(value, np.ndarray) else compact(float(value)) for value in values]


def embedded(document: Any) -> str:
    """JSON that is safe inside `<script type="application/json">`, for any names in it."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.translate(_ESCAPES)


def shown(value: float | None) -> str:
    """A number as text."""
    return "missing" if value is None else f"{value:.3g}"
