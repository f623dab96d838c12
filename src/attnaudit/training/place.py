"""Where and how a training runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from attnaudit.training.processes import Ranks


@dataclass(frozen=True)
class Place:
    """None of it decides what comes out, but for rounding and the number of ranks.

    Ranks share every batch, but each has random choices of its own, as has another kind of device. A training that is
    watched goes on with as many ranks as it began with.

    A checkpoint is written when the last one is `save_after` seconds old, and at the end.
    """

    device: str = "cpu"
    workers: int = 0
    compiled: bool = False
    recorded: bool = False
    save_after: float = 60.0
    ranks: Ranks = field(default_factory=Ranks)
