"""From measures and heads to numbers with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnaudit.errors import UsageError
from attnaudit.kernel.gram import PerHead
from attnaudit.measures.measure import Measure
from attnaudit.measures.pairs import REASON, too_many_pairs


@dataclass(frozen=True)
class Numbers:
    """One number per head, and for each the reason why it is missing, if it is and one is known."""

    values: PerHead
    problems: Sequence[str | None]


def evaluate(measures: Iterable[Measure], at: Any) -> dict[str, Numbers]:
    """Measures by name, of one batch of heads; `at` is what their functions take."""
    return {measure.name: _numbers(measure, at) for measure in measures}


def _numbers(measure: Measure, at: Any) -> Numbers:
    count = len(at.heads)
    if measure.cost.needs_pairs and too_many_pairs(at.heads.key):
        return Numbers(torch.full((count,), torch.nan, dtype=torch.float64), (REASON,) * count)
    values = _checked(measure, measure.function(at), count)
    complete = bool(values.isfinite().all())
    return Numbers(values, (None,) * count if complete else measure.guard.problems(at))


def _checked(measure: Measure, values: object, count: int) -> Tensor:
    """What the function of a measure returned, if it is what the measure promises."""
    if isinstance(values, Tensor) and values.shape == (count,):
        return values
    found = f"a tensor of shape {tuple(values.shape)}" if isinstance(values, Tensor) else f"{type(values).__name__}"
    raise UsageError(f"The measure {measure.name!r} must return one number per head, a tensor of {count}, got {found}.")
