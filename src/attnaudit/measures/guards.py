"""Why a head has no number: what measures need of a head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from attnaudit.measures.measure_input import MeasureInput


@dataclass(frozen=True)
class Guard:
    """What a measure needs of a head, in a word or two, and why a head of a batch does not have it (None if it does).

    The reasons explain missing numbers; they never remove a number that could be computed.
    """

    text: str
    problems: Callable[[Any], Sequence[str | None]]


def _none(at: MeasureInput) -> Sequence[str | None]:
    return (None,) * len(at.heads)


def _of_keys(at: MeasureInput) -> Sequence[str | None]:
    return at.keys.problems


def _of_prediction(at: MeasureInput) -> Sequence[str | None]:
    return at.prediction.problems


ANY_HEAD = Guard("any head", _none)
EIGENPAIRS = Guard("eigenpairs", _of_keys)
PREDICTED = Guard("prediction", _of_prediction)
