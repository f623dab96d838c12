"""What a measure is, and a family of measures that share their work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from torch import Tensor

from attnaudit.measures.evaluation import Evaluation


@dataclass(frozen=True)
class Measure:
    """One number per head.

    `closer` says which direction is closer to the theory ("higher", "lower", or "neither" for a plain description),
    `ideal` the value a head has for which the theory is exactly true. A measure `in_units_of_the_head` has a size set
    by that head's own queries and keys, so only references that keep these can be compared with it.
    """

    name: str
    text: str
    closer: str = "neither"
    ideal: float | None = None
    in_units_of_the_head: bool = False


class Scope(StrEnum):
    """What a family looks at, which decides when it is computed again.

    KEYS: queries and keys only, the same for every reference. VALUES: the values against the kernel of the keys.
    PREDICTION: the values against whatever a theory predicts.
    """

    KEYS = "keys"
    VALUES = "values"
    PREDICTION = "prediction"


@dataclass(frozen=True)
class Family:
    """Measures that share their work, and the function that computes them together."""

    scope: Scope
    compute: Callable[[Evaluation], Mapping[str, Tensor]]
    measures: tuple[Measure, ...]
