"""Which input units belong to, where some of their rows hold nothing of any."""

from __future__ import annotations

import torch
from torch import Tensor

from attnaudit.capture.tracing.labels import BLANK, LOST, narrowed


def of_whole_units(sample: Tensor) -> Tensor:
    """The input of (…, rows, dim): rows without one, as the first token of a decoder, are of that of all the others.

    If that of some is lost, so is that of the unit.
    """
    if not bool((narrowed(sample) < 0).any()):
        return sample
    only = sample.amax(dim=(-2, -1), keepdim=True)
    agree = ((sample == BLANK) | (sample == only)).flatten(-2).all(dim=-1)[..., None, None]
    found = torch.where(agree & (sample == BLANK), only, sample)
    return torch.where((sample == LOST).flatten(-2).any(dim=-1)[..., None, None], LOST, found)
