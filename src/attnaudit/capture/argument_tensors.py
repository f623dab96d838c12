"""The tensors that a model is called with, in whatever they come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class ArgumentTensors:
    """All tensors among the arguments of a model: `batched`, whose first axis may run over inputs, and `others`.

    A list or tuple with as many entries as there are inputs may have one for each, or be anything else: which input
    its tensors belong to is not known. Arguments that are tensors come before those inside of others: `input_masks`
    counts on that.
    """

    batched: tuple[Tensor, ...]
    others: tuple[Tensor, ...]

    @staticmethod
    def of(arguments: Any, inputs: int) -> ArgumentTensors:
        """Those of a tensor, of positional arguments or of arguments by name."""
        batched: list[Tensor] = []
        others: list[Tensor] = []
        seen: set[int] = set()
        waiting = deque((part, True) for part in _parts(arguments))
        while waiting:
            part, may_be_batched = waiting.popleft()
            if isinstance(part, Tensor):
                (batched if may_be_batched else others).append(part)
            elif id(part) not in seen:
                seen.add(id(part))
                one_each = isinstance(part, list | tuple) and len(part) == inputs > 1
                waiting.extend((inside, may_be_batched and not one_each) for inside in _parts(part))
        return ArgumentTensors(tuple(batched), tuple(others))


def _parts(value: Any) -> Iterable[Any]:
    """What is inside of a container, or of an object such as a cache of keys and values."""
    if isinstance(value, Tensor):
        return (value,)
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, list | tuple | set | frozenset | deque):
        return value
    if isinstance(value, nn.Module | type) or callable(value):
        return ()
    return getattr(value, "__dict__", {}).values()
