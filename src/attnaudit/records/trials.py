"""Repeated measurements of a laboratory experiment: the record that claims about it are judged on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trials:
    """Independent repetitions of one measurement, with its values under chance and under theory; higher is closer."""

    subject: str
    measure: str
    observed: tuple[float, ...]
    null: tuple[float, ...]
    planted: float
