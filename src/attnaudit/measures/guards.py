"""The small numbers a formula adds to its denominators."""

from __future__ import annotations

from dataclasses import dataclass

from attnaudit.protocol import Protocol


@dataclass(frozen=True)
class Guards:
    """Added to vector lengths (`norm`) and to ratios (`ratio`); zero where what cannot be computed shall be missing."""

    norm: float = 0.0
    ratio: float = 0.0


EXACT = Guards()
STUDY = Guards(norm=1e-8, ratio=1e-10)


def guards_of(protocol: Protocol) -> Guards:
    """None for `exact`, the study's for `paper`."""
    return STUDY if protocol is Protocol.PAPER else EXACT
