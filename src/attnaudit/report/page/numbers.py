"""Numbers and text on their way into the page: short, finite, harmless."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Significant digits: more than an image shows, and a third of what float64 prints.
_DIGITS = 4
#: What could end the element a document is embedded in, or a line of an old JavaScript.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def compact(value: float | None) -> float | None:
    """Rounded to what is shown; None for what is no number."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{_DIGITS - 1}e}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e6 else rounded


def compacted(values: NDArray[np.float64]) -> list[Any]:
    """The same for an array of any number of axes."""
    return [compacted(value) if isinstance(value, np.ndarray) else compact(float(value)) for value in values]


def embedded(document: Any) -> str:
    """JSON that can stand inside `<script type="application/json">`, whatever the names in it say."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.translate(_ESCAPES)


def shown(value: float | None) -> str:
    """A number to read."""
    return "missing" if value is None else f"{value:.3g}"
