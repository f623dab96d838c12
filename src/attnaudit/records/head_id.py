"""The identity of an attention head."""

from __future__ import annotations

from typing import NamedTuple


class HeadId(NamedTuple):
    """The model, input, layer and number of a head; `window` is 0 unless attention runs in windows, as in Swin."""

    model: str
    input: str
    layer: int
    head: int
    window: int = 0
