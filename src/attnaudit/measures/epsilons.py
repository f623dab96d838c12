"""The small numbers that a formula adds to its denominators."""

from __future__ import annotations

from dataclasses import dataclass

from attnaudit.protocol import Protocol


@dataclass(frozen=True)
class Epsilons:
    """Added to vector lengths (`norm`) and to ratios (`ratio`); with zero, what cannot be computed is missing."""

    norm: float = 0.0
    ratio: float = 0.0


EXACT = Epsilons()
STUDY = Epsilons(norm=1e-8, ratio=1e-10)


def epsilons_of(protocol: Protocol) -> Epsilons:
    """Zero for `exact`, the study's for `paper`."""
    return STUDY if protocol is Protocol.PAPER else EXACT
