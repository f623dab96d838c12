"""Repeated measurements of a laboratory experiment: the record that claims about it are judged on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trials:
    """Independent repetitions of one measurement, with its values under chance and under theory; higher is closer.

    Of a gain, `planted` is the size of an effect that is known to be there.
    """

    subject: str
    measure: str
    observed: tuple[float, ...]
    null: tuple[float, ...]
    planted: float
