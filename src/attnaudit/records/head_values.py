"""The values of one measure as arrays: a row per head, a column per reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class HeadTable:
    """One measure of one model: a row per identifiable head, a column per reference, NaN where it is missing."""

    inputs: NDArray[np.int64]
    references: dict[str, Numbers]
    unidentifiable: int

    def __len__(self) -> int:
        return len(self.inputs)
