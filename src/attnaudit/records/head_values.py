"""The values of one measure as arrays: a row per head and input, a column per reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


class HeadName(NamedTuple):
    """A head of a network, whatever its input."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"layer {self.layer}, head {self.head}"


@dataclass(frozen=True)
class HeadTable:
    """One measure of one model: a row per identifiable head and input, a column per reference, NaN where it is missing.

    `inputs` numbers independent inputs, or groups of them; `heads` is a place in `names`. Windows of one input are
    averaged. `references` are means over repeats, `repeats` has every one, as a column. `unidentifiable` counts the
    rows that the guard of the theory does not accept, `never` the heads that it accepts on no input, and `impossible`
    counts heads of which the theory cannot be true, by theorem.
    """

    inputs: NDArray[np.int64]
    heads: NDArray[np.int64]
    names: tuple[HeadName, ...]
    references: dict[str, Numbers]
    repeats: dict[str, Numbers]
    unidentifiable: int
    impossible: Mapping[str, int] = field(default_factory=dict)
    never: int = 0

    def __len__(self) -> int:
        return len(self.inputs)

    def inputs_of(self, reference: str) -> NDArray[np.int64]:
        """The inputs that have a number of this reference: some references are measured on a sample of them."""
        found: NDArray[np.int64] = np.unique(self.inputs[np.isfinite(self.references[reference])])
        return found
