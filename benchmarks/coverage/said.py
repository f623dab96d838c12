"""What capture says of a model."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.coverage.case import Inputs
from torch import nn

import attnaudit
from attnaudit.capture import Heads
from attnaudit.capture.capture import capture_each
from attnaudit.errors import CaptureError


@dataclass(frozen=True)
class Said:
    """Captured layers, refused ones with their reasons, and the largest replay error; names as capture gives them."""

    captured: tuple[tuple[str, Heads], ...]
    refused: tuple[tuple[str, str], ...]
    error: float


def said(model: nn.Module, inputs: Inputs) -> Said:
    """Capture the model, and return what was captured and what was refused."""
    try:
        capture = attnaudit.capture(model, inputs)
    except CaptureError:  # nothing was captured, and the message has only the first reasons
        log = capture_each(model, inputs, ("a", "b"), lambda heads: None, model_name="model")
        return Said((), tuple((refusal.layer, refusal.reason) for refusal in log.refusals), 0.0)
    return Said(
        captured=tuple(zip((name.rstrip("'") for name in capture.layer_names), capture.layers, strict=True)),
        refused=tuple((refusal.layer, refusal.reason) for refusal in capture.refusals),
        error=capture.certificate.worst,
    )
