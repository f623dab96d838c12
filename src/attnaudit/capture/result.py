"""The result of a capture: the heads of each layer, the refused layers, and a certificate."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from attnaudit.capture.attention_call import Refusal
from attnaudit.capture.heads import Heads
from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.capture.traits import Traits
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
        return max(self.errors.values(), default=0.0)


@dataclass(frozen=True)
class CaptureLog:
    """What a forward pass leaves besides its heads: names of the captured layers, certificate, and refusals.

    Layers are numbered in the order they ran. `layer_names` maps the numbers of captured layers to names; the numbers
    it skips belong to refused layers and to those of Primal-Attention, `primal` by name. `other_softmaxes` are those of
    routers, gates and class probabilities.
    """

    layer_names: Mapping[int, str]
    certificate: Certificate
    refusals: tuple[Refusal, ...]
    primal: Mapping[str, PrimalHeads] = field(default_factory=dict)
    traits: Mapping[str, Traits] = field(default_factory=dict)
    other_softmaxes: tuple[Refusal, ...] = ()

    @property
    def refused_numbers(self) -> dict[str, int]:
        """The number of each refused layer."""
        free = (number for number in itertools.count() if number not in self.layer_names)
        return dict(zip(dict.fromkeys(refusal.layer for refusal in self.refusals), free, strict=False))

    def require_heads(self, model_name: str) -> None:
        """Check that at least one layer of softmax attention was captured.

        Raises:
            CaptureError: no layer was captured.
        """
        if not self.layer_names:
            why = "; ".join(f"{r.layer}: {r.reason}" for r in self.refusals[:4]) or "it makes no attention call"
            raise CaptureError(f"No attention layer of {model_name} can be captured ({why}).")


@dataclass(frozen=True)
class Capture:
    """Everything captured from one forward pass, in the order the layers ran; `layer_names` names each batch of heads.

    A layer gives one batch, or several if its inputs differ in what is padding. Primal-Attention layers, which have no
    values, are in `primal`, by name.
    """

    layers: tuple[Heads, ...]
    layer_names: tuple[str, ...]
    certificate: Certificate
    refusals: tuple[Refusal, ...] = field(default=())
    primal: Mapping[str, PrimalHeads] = field(default_factory=dict)
    traits: Mapping[str, Traits] = field(default_factory=dict)
    other_softmaxes: tuple[Refusal, ...] = ()

    @property
    def heads(self) -> Heads:
        """All layers as one batch; layers of different shape raise `ShapeError`."""
        return Heads.cat(self.layers)

    def __repr__(self) -> str:
        primal = f", {len(self.primal)} of Primal-Attention" if self.primal else ""
        refused = f", {len(self.refusals)} refused" if self.refusals else ""
        count = sum(len(heads) for heads in self.layers)
        return (
            f"Capture({len(set(self.layer_names))} layers{primal}{refused}, {count} heads, "
            f"replay error {self.certificate.worst:.1e})"
        )

    def _repr_html_(self) -> str:
        caption = f"Capture: replay error {self.certificate.worst:.1e}"
        captured = [(name, repr(heads)) for name, heads in zip(self.layer_names, self.layers, strict=True)]
        captured += [(name, f"Primal-Attention: {len(heads)} heads") for name, heads in self.primal.items()]
        return html_table(
            caption, captured + [(refusal.layer, f"refused: {refusal.reason}") for refusal in self.refusals]
        )
