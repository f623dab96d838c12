"""Going through a large matrix in blocks of rows, so that no more of it is held at once than fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch


def row_slices(rows: int, row_size: int, limit: Mapping[str, int], device: torch.device) -> Iterator[slice]:
    """Slices of rows of `row_size` numbers, each of about `limit` numbers for the kind of device; one row at least."""
    step = max(1, limit.get(device.type, limit["cpu"]) // max(1, row_size))
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))
