"""Labels of tensors that others are written into, at places that an index or a mask names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from attnaudit.capture.tracing.labels import BLANK, OWN, Labels, compact, lost, nothing, on_small, varies
from attnaudit.capture.tracing.operations import TorchOp

_BY_INDEX = frozenset(("index_add", "index_copy", "index_reduce"))
_BY_SCATTER = frozenset(("scatter", "scatter_add", "scatter_reduce"))
_BY_PLACES = frozenset(("index_put", "_unsafe_index_put", "_index_put_impl"))
_ADDS = frozenset(("index_add", "index_reduce", "scatter_add", "scatter_reduce"))


@dataclass(frozen=True, slots=True)
class Writing:
    """How `source` is written into a tensor: `write(tensor, source)`, of which `read` finds what `cut(source)` is.

    With `adds` it is added to what was there before, with `everywhere` nothing is left of that. Along axes other than
    `axis`, if that is known, nothing moves.
    """

    source: Tensor
    write: Callable[[Tensor, Tensor], Tensor]
    read: Callable[[Tensor], Tensor]
    cut: Callable[[Tensor], Tensor]
    adds: bool
    axis: int | None = None
    everywhere: bool = False


def writing_of(operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Writing | None:
    """What an operation writes, if it writes a tensor into its first operand; numbers change no labels."""
    name = operation.name.removesuffix("_")
    adds = name in _ADDS or "reduce" in kwargs
    if name in _BY_INDEX:
        axis, index = args[1], args[2]
        return Writing(
            args[3],
            lambda whole, part: whole.index_copy(axis, index.cpu(), part),
            lambda whole: whole.index_select(axis, index.cpu()),
            lambda part: part,
            adds,
            axis,
        )
    if name in _BY_SCATTER and len(args) > 3 and isinstance(args[3], Tensor):
        axis, index = args[1], args[2]
        corner = tuple(slice(length) for length in index.shape)
        return Writing(
            args[3],
            lambda whole, part: whole.scatter(axis, index.cpu(), part),
            lambda whole: whole.gather(axis, index.cpu()),
            lambda part: part[corner],
            adds,
        )
    if name in _BY_PLACES:
        indices = args[1]

        def places() -> list[Tensor | None]:
            return [None if index is None else index.cpu() for index in indices]

        return Writing(
            args[2],
            lambda whole, part: torch.ops.aten.index_put(whole, places(), part),
            lambda whole: torch.ops.aten.index(whole, places()),
            lambda part: part,
            len(args) > 3 and bool(args[3]),
        )
    if name == "masked_scatter":
        mask, shape = args[1], args[0].shape
        return Writing(
            args[2],
            lambda whole, part: whole.masked_scatter(mask.cpu(), part.contiguous()),
            lambda whole: whole.masked_select(mask.cpu()),
            lambda part: part.flatten()[: int(mask.expand(shape).sum())],
            adds,
        )
    if name == "copy":
        shape = args[0].shape
        return Writing(
            args[1],
            lambda whole, part: part.expand(shape),
            lambda whole: whole,
            lambda part: part.expand(shape),
            adds,
            everywhere=True,
        )
    return None


def written(writing: Writing, whole: Labels | None, part: Labels | None, shape: torch.Size) -> Labels:
    """Labels of a tensor that a part is written into; one without labels of its own holds nothing of the input."""

    def make(name: str) -> Tensor | None:
        if name == "row" and not writing.everywhere:
            return None  # parts may be rows of several products, as those of experts, with the same numbers
        own, other = (None if labels is None else labels.get(name) for labels in (whole, part))
        if other is None or (whole is not None and own is None and not writing.everywhere):
            return lost(name, shape)
        before = nothing(name, shape) if own is None else own
        try:
            found = _written(writing, before, other)
        except (RuntimeError, IndexError):
            found = None
        return lost(name, shape) if found is None else found.expand(shape)

    return Labels.after([whole, part], make)


def _written(writing: Writing, before: Tensor, other: Tensor) -> Tensor | None:
    """One label; None if parts of which the labels differ come together in one place."""
    if writing.axis is not None:
        kept = [axis for axis in range(before.dim()) if axis != writing.axis % before.dim()]
        same = [axis for axis in kept if not varies(before, axis) and not varies(other, axis)]
        before, other = (_thin(label, same) for label in (before, other))
    before = on_small(before, Tensor.contiguous)
    there, wanted, after = writing.read(before), writing.cut(other), writing.write(before, other)
    agree = bool((writing.read(after) == wanted).all())
    if writing.adds:
        agree = agree and bool(((there == BLANK) | (there == OWN) | (there == wanted)).all())
    return compact(after) if agree else None


def _thin(label: Tensor, axes: Sequence[int]) -> Tensor:
    for axis in axes:
        label = label.narrow(axis, 0, min(label.shape[axis], 1))
    return label
