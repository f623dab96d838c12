"""Where a row of evidence comes from."""

from __future__ import annotations

from typing import NamedTuple


class HeadId(NamedTuple):
    """Where a head comes from; `window` is 0 unless attention runs in windows, as in Swin."""

    model: str
    input: str
    layer: int
    head: int
    window: int = 0
