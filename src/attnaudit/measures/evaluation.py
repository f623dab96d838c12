"""From measures and heads to numbers with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.errors import UsageError
from attnaudit.kernel.gram import PerHead
from attnaudit.measures.measure import Measure, Scope
from attnaudit.measures.pairs import REASON, too_many_pairs
from attnaudit.protocol import Protocol
from attnaudit.records.schema import Measurement, RowKey


@dataclass(frozen=True)
class Numbers:
    """One number per head, and for each the reason why it is missing, if it is and one is known."""

    values: PerHead
    problems: Sequence[str | None]


#: The numbers of a batch by measure, and which rows they become.
Measured = tuple[RowKey, dict[str, Numbers]]


def evaluate(measures: Sequence[Measure], at: Any) -> dict[str, Numbers]:
    """Measures by name, of one batch of heads; `at` is what their functions take."""
    values = [_values(measure, at) for measure in measures]
    # All at once, because every look at a number waits for a GPU.
    complete = torch.stack([tensor.isfinite().all() for tensor in values]).tolist() if values else []
    return {
        measure.name: Numbers(tensor, (None,) * len(at.heads) if whole else _problems(measure, at))
        for measure, tensor, whole in zip(measures, values, complete, strict=True)
    }


def joined(
    heads: Heads | PrimalHeads, found: Iterable[Iterable[Measured]], protocol: Protocol
) -> Iterator[Measurement]:
    """What the batches of a layer gave, key by key, whatever the number of batches."""
    parts: dict[RowKey, list[dict[str, Numbers]]] = {}
    for batch in found:
        for key, numbers in batch:
            parts.setdefault(key, []).append(numbers)
    for key, measured in parts.items():
        names = list(measured[0])
        yield Measurement(
            heads,
            key,
            {name: torch.cat([part[name].values for part in measured]) for name in names},
            {name: [problem for part in measured for problem in part[name].problems] for name in names},
            protocol,
        )


def _values(measure: Measure, at: Any) -> PerHead:
    if _left_out(measure, at) is not None:
        return torch.full((len(at.heads),), torch.nan, dtype=torch.float64, device=at.heads.key.device)
    values = _checked(measure, measure.function(at), len(at.heads))
    usable = at.intact(keys_only=measure.scope is Scope.KEYS)
    if measure.guard.usable is not None:
        usable = usable & measure.guard.usable(at)
    numbers = values if values.is_floating_point() else values.double()
    return numbers.masked_fill(~usable, torch.nan)


def _problems(measure: Measure, at: Any) -> Sequence[str | None]:
    if (reason := _left_out(measure, at)) is not None:
        return (reason,) * len(at.heads)
    first, last = at.damage(keys_only=measure.scope is Scope.KEYS)
    return [a or b or c for a, b, c in zip(first, measure.guard.problems(at), last, strict=True)]


def _left_out(measure: Measure, at: Any) -> str | None:
    """Why a measure is not computed for these heads at all; None if it is."""
    if measure.only_for is not None and not measure.applies_to(at.heads):
        return measure.only_for.otherwise
    return REASON if measure.cost.needs_pairs and too_many_pairs(at.heads.key) else None


def _checked(measure: Measure, values: object, count: int) -> Tensor:
    """What the function of a measure returned, if it is what the measure promises."""
    if isinstance(values, Tensor) and values.shape == (count,):
        return values
    found = f"a tensor of shape {tuple(values.shape)}" if isinstance(values, Tensor) else f"{type(values).__name__}"
    raise UsageError(f"The measure {measure.name!r} must return one number per head, a tensor of {count}, got {found}.")
