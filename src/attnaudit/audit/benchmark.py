"""What `attnaudit bench` found: the time of an audit by pass and stage, beside its floor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from attnaudit.audit.stages import AROUND


@dataclass(frozen=True)
class Benchmark:
    """Seconds of a default audit.

    Attributes:
        model: its label.
        device: where it ran.
        inputs: how many there were.
        heads: heads times inputs (or their windows).
        seconds: by pass and stage; they add up to what the run took with the clock.
        floor: the least that the evidence costs, by stage; see `audit.floor`.
        reference: of one matrix of `audit.floor.reference_seconds`, timed before and after the run.
        engine: what the engine took without the clock, which on a GPU waits at every stage; None if it was not run so.
    """

    model: str
    device: str
    inputs: int
    heads: int
    seconds: Mapping[tuple[str, str], float]
    floor: Mapping[str, float]
    reference: float
    engine: float | None = None

    @property
    def stages(self) -> dict[str, float]:
        """Seconds of the engine by stage, in all passes."""
        return self._summed(lambda own, stage: None if own == AROUND else stage)

    @property
    def passes(self) -> dict[str, float]:
        """Seconds of the engine by pass over the heads."""
        return self._summed(lambda own, stage: None if own == AROUND else own)

    @property
    def around(self) -> dict[str, float]:
        """Seconds around the engine, by stage."""
        return self._summed(lambda own, stage: stage if own == AROUND else None)

    @property
    def traced(self) -> float:
        """Seconds of the engine with the clock."""
        return sum(self.stages.values())

    @property
    def total(self) -> float:
        """Seconds of the engine."""
        return self.traced if self.engine is None else self.engine

    @property
    def least(self) -> float:
        """Seconds of the floor."""
        return sum(self.floor.values())

    @property
    def record(self) -> dict[str, Any]:
        """As plain data: the engine in microseconds per head, what is around it in seconds."""
        per_head = 1e6 / self.heads
        return {
            "model": self.model,
            "device": self.device,
            "inputs": self.inputs,
            "heads": self.heads,
            "microseconds_per_head": {name: value * per_head for name, value in self.stages.items()},
            "passes": {name: value * per_head for name, value in self.passes.items()},
            "floor": {name: value * per_head for name, value in self.floor.items()},
            "traced_total": self.traced * per_head,
            "total": self.total * per_head,
            "floor_total": self.least * per_head,
            "total_over_floor": self.total / self.least,
            "reference": self.reference * 1e6,
            "total_over_reference": self.total / self.heads / self.reference,
            "seconds_around": self.around,
            "seconds_from_shell_to_page": sum(self.around.values()) + self.total,
        }

    def _summed(self, name_of: Callable[[str, str], str | None]) -> dict[str, float]:
        found: dict[str, float] = {}
        for (own, stage), spent in self.seconds.items():
            name = name_of(own, stage)
            if name is not None:
                found[name] = found.get(name, 0.0) + spent
        return found
