"""Large negative numbers that are written over scores, which hide keys from queries as an added mask does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attnaudit.numerics.masks import HIDDEN

#: Operations that replace elements of their first operand, wherever their other arguments say.
REPLACING = (
    "fill", "copy", "index_put", "index_fill", "index_copy", "scatter", "masked_scatter", "slice_scatter",
    "select_scatter",
)  # fmt: skip


def hiding(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
    """The bias that an operation amounts to, 0 where it wrote nothing; None if it wrote other numbers, too, or added.

    The operation is repeated on a tensor without numbers: those that it has afterwards were written.
    """
    if kwargs.get("accumulate") or "reduce" in kwargs or (name == "index_put" and True in args[3:]):
        return None
    blank = torch.full_like(args[0], torch.nan, memory_format=torch.contiguous_format)
    after: Tensor = getattr(torch.ops.aten, name)(blank, *args[1:], **kwargs)
    untouched = after.isnan()
    return after.masked_fill(untouched, 0) if bool((untouched | (after <= HIDDEN)).all()) else None
