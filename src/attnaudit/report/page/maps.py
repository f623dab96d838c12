"""Heat maps: the mean of a measure over inputs, by layer and head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnaudit.records.measured_heads import HeadMeans
from attnaudit.report.page.numbers import compacted

#: One number for all heads, or a row per layer.
Cells = int | list[list[int]]


@dataclass(frozen=True)
class HeadMap:
    """Mean and standard deviation over inputs of every head, a row per layer; None without a number.

    Heads that a layer does not have are None, and neither counted nor missing.
    """

    layers: list[int]
    mean: list[list[float | None]]
    spread: list[list[float | None]]
    counted: Cells
    missing: Cells

    @property
    def is_empty(self) -> bool:
        """Whether no head has a number."""
        return all(mean is None for row in self.mean for mean in row)


def head_map(found: HeadMeans) -> HeadMap:
    """The map of one measure; windows count as inputs."""
    layers, places = np.unique(found.layers, return_inverse=True)
    shape = (len(layers), int(found.heads.max(initial=-1)) + 1)

    def laid_out(column: Any, empty: float) -> Any:
        matrix = np.full(shape, empty)
        matrix[places, found.heads] = column
        return matrix

    mean, spread = (compacted(laid_out(column, np.nan)) for column in (found.mean, found.deviation))
    counted, missing = (_cells(laid_out(column, 0)) for column in (found.counted, found.missing))
    return HeadMap(layers.tolist(), mean, spread, counted, missing)


def _cells(numbers: Any) -> Cells:
    """One number if all heads agree, which is common and keeps the page small."""
    different = np.unique(numbers)
    return int(different[0]) if len(different) == 1 else numbers.astype(int).tolist()
