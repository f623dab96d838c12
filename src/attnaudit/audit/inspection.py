"""Which attention layers of a model can be captured, and why others cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from attnaudit.audit.unit import capture_prepared
from attnaudit.capture import Heads
from attnaudit.display import counted
from attnaudit.errors import CaptureError, WeightsError
from attnaudit.protocol import Protocol
from attnaudit.sources.model import ModelSpec, load_model, parse_model
from attnaudit.sources.selection import InputSelection, select_inputs
from attnaudit.theories.base import too_few_tokens


@dataclass(frozen=True)
class Inspection:
    """What a capture of one input came to: sizes of the layers, reasons for refused ones, or why there is nothing.

    `undecidable` says, for a few of the captured layers, why their heads count in no verdict.
    """

    label: str
    captured: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    undecidable: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None


def inspect_model(name: str, *, download: bool = False) -> Inspection:
    """Capture a model on one of the default inputs."""
    spec = with_any_weights(name, download=download)
    model = load_model(spec)
    (shard,) = select_inputs([spec], InputSelection(limit=1), Protocol.EXACT).shards
    try:
        found = capture_prepared(model.module, shard.prepare(model, Protocol.EXACT), "cpu", model.label)
    except CaptureError as error:
        return Inspection(model.label, failure=str(error))
    return Inspection(
        model.label,
        {
            layer: _described(heads, str(found.traits[layer]), found.certificate.errors[layer])
            for layer, heads in zip(found.layer_names, found.layers, strict=True)
        },
        {refusal.layer: refusal.reason for refusal in found.refusals},
        _undecidable(found.layers),
    )


def _described(heads: Heads, kind: str, error: float) -> str:
    windows = len(heads) // heads.per_input
    count = counted(heads.per_input, "head") + (f" x {windows:,} windows" if windows > 1 else "")
    size = f"{count} x {heads.tokens:,} tokens x {heads.dim} dims"
    return f"{size}{', ' + kind if kind else ''}, replay error {error:.1e}"


def _undecidable(layers: Sequence[Heads]) -> dict[str, str]:
    """Reasons why layers count in no verdict, by how many have them."""
    reasons = Counter(reason for heads in layers if (reason := too_few_tokens(heads, None)[0]))
    return {
        f"{count} of {counted(len(layers), 'layer')}": f"{reason}, so that their heads cannot be told from chance and "
        "decide nothing"
        for reason, count in reasons.items()
    }


def with_any_weights(name: str, *, download: bool = False) -> ModelSpec:
    """A model by name, with random weights where it has no local ones: what can be captured is the same."""
    try:
        return parse_model(name, download=download)
    except WeightsError:
        return parse_model(name, random_weights=True)
