"""Labels of tensors that share their memory with one that was changed in place."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnaudit.capture.tracing.labels import BLANK, Labels, compact, lost, nothing, on_small, varies


@dataclass(frozen=True, slots=True)
class Region:
    """How a tensor lies in the memory that it shares with others; it keeps none of them alive."""

    size: torch.Size
    strides: tuple[int, ...]
    start: int
    memory: int

    @staticmethod
    def of(tensor: Tensor) -> Region:
        """That of a tensor."""
        memory = tensor.untyped_storage().nbytes() // tensor.element_size()
        return Region(tensor.shape, tensor.stride(), int(tensor.storage_offset()), memory)

    def inside(self, memory: Tensor) -> Tensor:
        """The part of a memory that it is."""
        return memory.as_strided(self.size, self.strides, self.start)

    def slices_of(self, whole: Region) -> tuple[slice, ...] | None:
        """Where it is in a tensor that it is a slice of, along every axis; None if it is something else."""
        if self.strides != whole.strides:
            return None
        rest, starts = self.start - whole.start, [0] * len(self.size)
        for axis in sorted(range(len(starts)), key=lambda axis: -self.strides[axis]):
            if whole.size[axis] > 1 and self.strides[axis] > 0:
                starts[axis], rest = divmod(rest, self.strides[axis])
        slices = tuple(slice(start, start + length) for start, length in zip(starts, self.size, strict=True))
        fits = all(own.start >= 0 and own.stop <= length for own, length in zip(slices, whole.size, strict=True))
        return slices if fits and rest == 0 else None


def overwritten(whole: Tensor, labels: Labels | None, part: Tensor, other: Labels | None) -> Labels:
    """Labels of a tensor, after a part of its memory got other ones; without labels, it held nothing of the input."""
    outer, inner = Region.of(whole), Region.of(part)

    def make(name: str) -> Tensor | None:
        before, after = (None if own is None else own.get(name) for own in (labels, other))
        if after is None or (labels is not None and before is None) or outer.memory != inner.memory:
            return lost(name, outer.size)
        before = nothing(name, outer.size) if before is None else before
        slices = inner.slices_of(outer)
        try:
            made = _joined(outer, before, inner, after) if slices is None else _put(before, after, slices)
        except (RuntimeError, IndexError):
            return lost(name, outer.size)
        return compact(made).expand(outer.size)

    return Labels.after([labels, other], make)


def _put(before: Tensor, after: Tensor, slices: tuple[slice, ...]) -> Tensor:
    """A label with another one in a slice; it has the size 1 along axes on which neither varies."""
    places = list(slices)
    for axis, own in enumerate(slices):
        if before.shape[axis] == after.shape[axis] and not varies(before, axis) and not varies(after, axis):
            before, after = before.narrow(axis, 0, 1), after.narrow(axis, 0, 1)
            places[axis] = slice(own.start, own.start + 1)
    made: Tensor = on_small(before, torch.clone).contiguous()
    made[tuple(places)] = after
    return made


def _joined(outer: Region, before: Tensor, inner: Region, after: Tensor) -> Tensor:
    """A label with another one in some of its memory."""
    memory: Tensor = on_small(torch.tensor(BLANK).expand(outer.memory), torch.Tensor.contiguous)
    outer.inside(memory).copy_(before)
    inner.inside(memory).copy_(after)
    return outer.inside(memory)
