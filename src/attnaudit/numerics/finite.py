"""Numbers of which nothing can be computed."""

from __future__ import annotations

import torch
from torch import Tensor


def first_not_finite(tensor: Tensor, *, is_mask: bool = False) -> int | None:
    """The first place on the first axis with NaN or an infinite number; None if there is none.

    A mask may hold -∞, which hides tokens.
    """
    if not tensor.is_floating_point() or tensor.is_meta or tensor.layout != torch.strided:
        return None
    bad = tensor.isnan() | tensor.isposinf() if is_mask else ~tensor.isfinite()
    places = bad.reshape(len(bad), -1).any(dim=1).nonzero() if bad.dim() else bad.nonzero()
    return int(places[0]) if len(places) else None
