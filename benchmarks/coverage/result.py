"""What was measured of one model."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

#: Why models were not run.
SLOW, NOT_REACHED = "took more than", "it was not reached"


@dataclass
class Result:
    """Numbers of attention calls of one model: expected, captured, refused (layer, reason, number), listed and missed.

    `crashed`, `not_run` and `unsupported` say why there are none. `listed` are the expected ones that capture lists
    as no attention, `other` the softmaxes that the count does not take for attention, and `extra` captured layers
    that it does not know. `inputs` is 1 for models that pack several inputs into one row. `difference` is the largest
    one between the attention weights of captured heads and those of the model, over the `compared` calls where both
    are known; `returned` are the attention tensors that the model itself can return, of which `returned_found` are
    among the captured heads. `versions` are those of what it was measured with.
    """

    library: str
    model: str
    implementation: str
    expected: int = 0
    captured: int = 0
    refused: list[list[Any]] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    inputs: int = 2
    crashed: str | None = None
    not_run: str | None = None
    unsupported: str | None = None
    replay_error: float = 0.0
    compared: int = 0
    difference: float = 0.0
    returned: int = 0
    returned_found: int = 0
    returned_difference: float = 0.0
    seconds: float = 0.0
    versions: str = ""

    @property
    def refusals(self) -> int:
        """The number of refused calls."""
        return sum(count for _, _, count in self.refused)

    @property
    def measured(self) -> bool:
        """Whether the model ran."""
        return self.not_run is None and self.unsupported is None

    @property
    def name(self) -> str:
        """Library, model and implementation."""
        return f"{self.library} {self.model}" + f" ({self.implementation})" * (self.implementation != "its own")

    @property
    def line(self) -> str:
        """One line for the terminal."""
        if not self.measured:
            return f"{self.name}: not run: {self.unsupported or self.not_run}"
        if self.crashed:
            return f"{self.name}: {self.expected} expected, CRASHED: {self.crashed}"
        text = f"{self.name}: {self.expected} expected, {self.captured} captured, {self.refusals} refused"
        missed = f", {len(self.missed)} MISSED" if self.missed else ""
        extra = f", {len(self.extra)} EXTRA" if self.extra else ""
        listed = f", {len(self.listed)} listed" if self.listed else ""
        weights = (
            f"weights differ by {self.difference:.0e} ({self.compared})" if self.compared else "no weights compared"
        )
        return f"{text}{listed}{missed}{extra}, {weights}, {self.seconds} s"

    def to_dict(self) -> dict[str, Any]:
        """As JSON stores it."""
        return asdict(self)
