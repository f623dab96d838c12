"""Rows of numbers as bytes: enough to draw them, and an eighth of their size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float32, Float64, UInt8

_STEPS = 255
#: How Arrow stores them.
QUANTISED = pa.struct(
    [
        pa.field("codes", pa.binary()),
        pa.field("low", pa.list_(pa.float32())),
        pa.field("high", pa.list_(pa.float32())),
    ]
)


@dataclass(frozen=True)
class QuantisedRows:
    """low + (high - low) · code / 255, with a `low` and a `high` per row: wrong by half a step at most."""

    codes: UInt8[np.ndarray, "rows columns"]
    low: Float32[np.ndarray, "rows"]
    high: Float32[np.ndarray, "rows"]

    @staticmethod
    def of(rows: Float64[np.ndarray, "rows columns"], low: float | None = None) -> QuantisedRows:
        """Finite numbers; the smallest of each row is `low`, if that is known."""
        lowest = rows.min(axis=1) if low is None else np.full(len(rows), low)
        lows, highs = lowest.astype(np.float32), rows.max(axis=1).astype(np.float32)
        steps = np.maximum(highs - lows, np.finfo(np.float32).tiny).astype(np.float64) / _STEPS
        codes = np.rint((rows - lows[:, None]) / steps[:, None]).clip(0, _STEPS)
        return QuantisedRows(codes.astype(np.uint8), lows, highs)

    def decoded(self) -> Float64[np.ndarray, "rows columns"]:
        """The numbers again."""
        steps = (self.high - self.low).astype(np.float64) / _STEPS
        numbers: Float64[np.ndarray, "rows columns"] = self.low[:, None] + self.codes * steps[:, None]
        return numbers

    def plain(self) -> dict[str, Any]:
        """As Arrow stores it."""
        return {"codes": self.codes.tobytes(), "low": self.low.tolist(), "high": self.high.tolist()}

    @staticmethod
    def from_plain(stored: dict[str, Any]) -> QuantisedRows:
        """What was stored."""
        rows = len(stored["low"])
        codes = np.frombuffer(stored["codes"], np.uint8).reshape(rows, -1)
        return QuantisedRows(codes, np.array(stored["low"], np.float32), np.array(stored["high"], np.float32))
