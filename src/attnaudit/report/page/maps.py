"""Heat maps: the mean of a measure over inputs, by layer and head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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


def head_map(rows: pa.Table) -> HeadMap:
    """The map of the observed rows of one measure; windows count as inputs."""
    grouped = rows.group_by(["layer", "head"], use_threads=False).aggregate(
        [
            ("value", "mean"),
            ("value", "stddev", pc.VarianceOptions(ddof=1)),
            ("value", "count"),
            ("value", "count", pc.CountOptions(mode="only_null")),
        ]
    )
    layers, places = np.unique(grouped["layer"].to_numpy(), return_inverse=True)
    heads = grouped["head"].to_numpy()
    shape = (len(layers), int(heads.max(initial=-1)) + 1)

    def laid_out(column: int, empty: float) -> Any:
        matrix = np.full(shape, empty)
        matrix[places, heads] = grouped.column(column).to_numpy()
        return matrix

    mean, spread = (compacted(laid_out(column, np.nan)) for column in (2, 3))
    counted, missing = (_cells(laid_out(column, 0)) for column in (4, 5))
    return HeadMap(layers.tolist(), mean, spread, counted, missing)


def _cells(numbers: Any) -> Cells:
    """One number if all heads agree, which is common and keeps the page small."""
    different = np.unique(numbers)
    return int(different[0]) if len(different) == 1 else numbers.astype(int).tolist()
