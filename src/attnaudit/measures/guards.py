"""Why a head has no number: what measures need of a head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from attnaudit.measures.measure_input import MeasureInput


@dataclass(frozen=True)
class Guard:
    """What a measure needs of a head, in words, and for each head of a batch the reason why it is missing, or None.

    The reasons explain numbers that are missing; they never remove a number that could be computed.
    """

    text: str
    problems: Callable[[Any], Sequence[str | None]]


def _none(at: MeasureInput) -> Sequence[str | None]:
    return (None,) * len(at.heads)


def _of_keys(at: MeasureInput) -> Sequence[str | None]:
    return at.keys.problems


def _of_prediction(at: MeasureInput) -> Sequence[str | None]:
    return at.prediction.problems


ANY_HEAD = Guard("nothing", _none)
EIGENPAIRS = Guard("d eigenpairs of the keys", _of_keys)
PREDICTED = Guard("a prediction", _of_prediction)
