"""What a capture leaves: heads by layer, the layers that were refused, and a certificate."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from attnaudit.capture.heads import Heads
from attnaudit.capture.record import Refusal
from attnaudit.display import html_table
from attnaudit.errors import CaptureError


@dataclass(frozen=True)
class Certificate:
    """Per layer name: the replay error max|softmax(QKᵀ·scale + bias)V - output| / max|output|."""

    errors: Mapping[str, float]
    tolerance: float

    @property
    def worst(self) -> float:
        """The largest replay error of all layers."""
        return max(self.errors.values())


@dataclass(frozen=True)
class Transcript:
    """What is known of a forward pass beside its heads: the layers, in the order they ran, and those refused.

    Layers are numbered as they run; the numbers that captured ones, `layer_names` by number, leave free are those of
    the refused.
    """

    layer_names: Mapping[int, str]
    certificate: Certificate
    refusals: tuple[Refusal, ...]

    @property
    def refused_numbers(self) -> dict[str, int]:
        """The number of each refused layer."""
        free = (number for number in itertools.count() if number not in self.layer_names)
        return {refusal.layer: number for refusal, number in zip(self.refusals, free, strict=False)}

    def require_heads(self, model_name: str) -> None:
        """Fail unless a layer was captured.

        Raises:
            CaptureError: none was.
        """
        if not self.layer_names:
            why = "; ".join(f"{r.layer}: {r.reason}" for r in self.refusals[:4]) or "it calls no attention at all"
            raise CaptureError(f"No attention layer of {model_name} can be captured ({why}).")


@dataclass(frozen=True)
class Capture:
    """Everything one forward pass left: a `Heads` per layer, in the order the layers ran."""

    layers: tuple[Heads, ...]
    layer_names: tuple[str, ...]
    certificate: Certificate
    refusals: tuple[Refusal, ...] = field(default=())

    @property
    def heads(self) -> Heads:
        """All layers as one batch; layers of different shape raise `ShapeError`."""
        return Heads.cat(self.layers)

    def __repr__(self) -> str:
        refused = f", {len(self.refusals)} refused" if self.refusals else ""
        count = sum(len(heads) for heads in self.layers)
        return f"Capture({len(self.layers)} layers{refused}, {count} heads, replay error {self.certificate.worst:.1e})"

    def _repr_html_(self) -> str:
        caption = f"Capture: replay error {self.certificate.worst:.1e}"
        captured = [(name, repr(heads)) for name, heads in zip(self.layer_names, self.layers, strict=True)]
        return html_table(
            caption, captured + [(refusal.layer, f"refused: {refusal.reason}") for refusal in self.refusals]
        )
