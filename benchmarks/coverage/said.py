"""What capture says of a model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from benchmarks.coverage.case import Inputs
from torch import nn

from attnaudit.capture import Heads
from attnaudit.capture.capture import batch_size, capture_each, evaluating

#: One captured layer: a batch of heads for every set of tokens that are not padding.
Layer = tuple[Heads, ...]


@dataclass(frozen=True)
class Said:
    """What was captured, refused (with reasons) and listed as no attention; names as capture gives them."""

    captured: tuple[tuple[str, Layer], ...]
    refused: tuple[tuple[str, str], ...]
    listed: tuple[tuple[str, str], ...]
    error: float

    @property
    def packed(self) -> bool:
        """Whether a layer is refused because its calls do not belong to one input each."""
        return any(reason.endswith("at a time") for _, reason in self.refused)


def said(model: nn.Module, inputs: Inputs) -> Said:
    """Capture the model, also where nothing can be captured."""
    heads: list[Heads] = []
    names = [f"input-{number}" for number in range(batch_size(inputs))]
    with evaluating(model):
        log = capture_each(model, inputs, names, heads.append, model_name="model")
    layers = groupby(heads, key=lambda part: part.index[0].layer)
    return Said(
        captured=tuple((log.layer_names[number].rstrip("'"), tuple(parts)) for number, parts in layers),
        refused=tuple((refusal.layer, refusal.reason) for refusal in log.refusals),
        listed=tuple((other.layer, other.reason) for other in log.other_softmaxes),
        error=log.certificate.worst,
    )
