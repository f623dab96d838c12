"""Inputs from a loader, such as torch's `DataLoader`: batch after batch, of one kind but not of one length."""

from __future__ import annotations

import inspect
import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from attnaudit.errors import InputError
from attnaudit.sources.inputs import Batch, TensorShard, batch_length, batch_part, tensor_shards

_log = logging.getLogger(__name__)


def loader_shards(
    loader: Iterable[Any], model: nn.Module | None, size: int, limit: int | None, groups: Sequence[str] | None = None
) -> tuple[TensorShard, ...]:
    """The first `limit` inputs of a loader, in shards; no further batch is asked for.

    A batch is a tensor, a mapping of tensors, or a sequence of which the first entry is one, as in (pictures, labels).
    Of a mapping only what the model's forward takes is kept, so that labels do no harm.

    Args:
        loader: anything that yields batches.
        model: whose forward takes them; None if it is not known.
        size: inputs per shard at most.
        limit: how many inputs; all if None.
        groups: what each input belongs to.

    Raises:
        InputError: it yields nothing, or something else.
    """
    parts: list[Batch] = []
    count = 0
    for batch in _batches(loader, model):
        wanted = batch_length(batch) if limit is None else min(batch_length(batch), limit - count)
        parts.append(batch_part(batch, slice(wanted)))
        count += wanted
        if count == limit:
            break
    if not parts:
        raise InputError("The loader yields no batch.")
    if groups is not None and len(groups) != count:
        raise InputError(f"Got {len(groups)} groups for {count} inputs of the loader.")
    shards: list[TensorShard] = []
    ends = itertools.accumulate(map(batch_length, parts))
    for part, end in zip(parts, ends, strict=True):
        own = slice(end - batch_length(part), end)
        names = [f"input-{place}" for place in range(count)[own]]
        shards += tensor_shards(part, size, names, None if groups is None else groups[own], first=not shards)
    return tuple(shards)


def _batches(loader: Iterable[Any], model: nn.Module | None) -> Iterator[Batch]:
    taken = _taken(model)
    said: set[str] = set()
    for place, content in enumerate(loader):
        batch = content[0] if isinstance(content, (tuple, list)) and content else content
        if isinstance(batch, Tensor):
            yield batch
        elif isinstance(batch, Mapping):
            yield {name: value for name, value in batch.items() if taken is None or name in taken}
            if left := sorted(set() if taken is None else batch.keys() - taken - said):
                _log.info("Not given to the model, whose forward does not take them: %s.", ", ".join(left))
                said.update(left)
        else:
            raise InputError(
                f"A loader must yield tensors, mappings of tensors, or tuples that begin with one, but batch {place} "
                f"is {_described(content)}."
            )


def _described(content: Any) -> str:
    kind = type(content).__name__
    return f"a {kind} of {type(content[0]).__name__}" if isinstance(content, (tuple, list)) and content else f"a {kind}"


def _taken(model: nn.Module | None) -> set[str] | None:
    """The names that a model's forward takes; None if it takes any."""
    if model is None:
        return None
    parameters = inspect.signature(model.forward).parameters.values()
    if any(own.kind is own.VAR_KEYWORD for own in parameters) and not hasattr(model, "config"):
        return None
    return {own.name for own in parameters}
