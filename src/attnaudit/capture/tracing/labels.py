"""Which row and column of which product, and which input, each element of a tensor belongs to.

A label is an integer tensor of the shape of the tensor that it describes, expanded (stride 0) along the axes on which
it does not vary, so that it takes next to no memory. Whatever rearranges the tensor rearranges the label: labels say
which axis of a foreign model's tensors runs over inputs, heads, tokens or features, whatever their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

Move = Callable[[Tensor], Tensor]

#: Tokens of several tensors that a model is called with are numbered this far apart.
APART = 1 << 32
#: A label that no longer is an expanded one may have this many elements.
_LARGEST = 1 << 24
#: In place of a label: of elements that hold nothing of the input, as padding.
BLANK = -1
#: In place of the number of an input: it is not known which one, since elements may have changed their places.
LOST = -2
#: In place of the number of a token: of places in a tensor of the model's own that nothing of the input was written to.
#: They may be tokens that the model adds, as the first one of a decoder, and need not be padding.
OWN = -3
_ALL = ("sample", "token", "batch", "row", "column")
#: Labels are looked up after this many operations at the latest, so that nothing recurses too deeply.
_LONGEST = 100


class LastingMove:
    """A move that can be compared with others and holds no tensors, so that labels can be kept by what moved them."""

    __slots__ = ()

    def __call__(self, tensor: Tensor) -> Tensor:
        """The tensor rearranged."""
        raise NotImplementedError


class Labels:
    """The labels of a tensor, each computed when somebody first asks for it; most are never asked for.

    `batch`, `row` and `column` are those of the last matrix product, `sample` is the number of the input, `token` that
    of the token of it that something was made for. Weights have their coordinates in the softmax instead of the first
    three, by number of axis, and the input and token of their query.

    `shared` holds what follows from labels, by what it follows from: layers of one form have the same labels, which are
    computed once.
    """

    __slots__ = ("_depth", "_found", "_make", "_shared")

    def __init__(
        self, make: Callable[[str], Tensor | None], depth: int = 0, shared: dict[Any, Labels] | None = None
    ) -> None:
        self._make = make
        self._found: dict[str, Tensor | None] = {}
        self._depth = depth
        self._shared = shared
        if depth > _LONGEST:
            for name in _ALL:
                self.get(name)
            self._depth = 0

    def get(self, name: str) -> Tensor | None:
        """The label with this name, if it is known."""
        if name not in self._found:
            self._found[name] = self._make(name)
        return self._found[name]

    @staticmethod
    def after(given: Sequence[Labels | None], make: Callable[[str], Tensor | None]) -> Labels:
        """Labels that follow from several others in a way that may hold tensors, and is not kept."""
        known = [labels for labels in given if labels is not None]
        return Labels(make, deepest(known), known[0]._shared if known else None)

    def moved(self, move: Move) -> Labels:
        """The labels of the tensor rearranged; without those that cannot be followed."""

        def follow(name: str) -> Tensor | None:
            label = self.get(name)
            if label is None:
                return None
            moved = _try(move, label)
            unknown = lost(name, label.shape) if moved is None else None
            return moved if unknown is None else _try(move, unknown)

        if isinstance(move, LastingMove):
            return self.leading_to(move, follow, self._depth + 1)
        return Labels(follow, self._depth + 1, self._shared)

    def leading_to(self, how: Any, make: Callable[[str], Tensor | None], depth: int = 0) -> Labels:
        """Labels that follow from these, the same ones if they follow in the same way; `make` may hold no tensors."""
        if self._shared is None:
            return Labels(make, depth)
        key = (self, how)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = Labels(make, depth, self._shared)
        return found


def deepest(given: Sequence[Labels]) -> int:
    """How many operations what follows from these labels is away from labels that were looked up."""
    return max((labels._depth for labels in given), default=0) + 1


def along(size: Sequence[int], axes: Mapping[int, int], count: int) -> Tensor:
    """0, 1, …, `count` - 1 along `axes` (axis: its size, in order) of a tensor of this size."""
    shape = [axes.get(axis, 1) for axis in range(len(size))]
    return torch.arange(count).view(shape).expand(tuple(size))


def tokens_along(size: Sequence[int], number: int) -> Tensor:
    """The tokens of the tensor with this number among those that a model is called with, along its second axis."""
    places = torch.arange(size[1]) + number * APART
    return places.view(1, -1, *[1] * (len(size) - 2)).expand(tuple(size))


def varies(label: Tensor, axis: int) -> bool:
    """Whether a label changes along an axis."""
    if label.shape[axis] <= 1 or label.stride(axis) == 0 or label.numel() == 0:
        return False
    first = [0] * label.dim()
    second = list(first)
    second[axis] = 1
    if label[tuple(first)].item() != label[tuple(second)].item():
        return True
    small = narrowed(label)
    return not bool((small == small.narrow(axis, 0, 1)).all())


def _try(move: Move, label: Tensor) -> Tensor | None:
    try:
        return move(label)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
        return None


def compact(label: Tensor) -> Tensor:
    """A copy with size 1 along the axes on which the label does not vary: what it does not say takes no memory."""
    for axis in range(label.dim()):
        if label.shape[axis] > 1 and not varies(label, axis):
            label = label.narrow(axis, 0, 1)
    return label.clone()


def lost(name: str, size: Sequence[int]) -> Tensor | None:
    """A label that cannot be followed; of inputs it is said, so that nobody takes them to be in order."""
    return torch.tensor(LOST).expand(tuple(size)) if name == "sample" else None


def nothing(name: str, size: Sequence[int]) -> Tensor:
    """A label of a tensor of the model's own that holds nothing of the input."""
    return torch.tensor(OWN if name == "token" else BLANK).expand(tuple(size))


def copy(tensor: Tensor) -> Tensor:
    """A copy of our own, in the order of its axes: the model may change its tensors in place later."""
    return tensor.clone(memory_format=torch.contiguous_format)


def taken(tensor: Tensor, places: Tensor) -> Tensor:
    """A copy of the parts of a tensor at these places along its first axis, which may be all of them in order."""
    whole = len(places) == len(tensor) and torch.equal(places, torch.arange(len(tensor)))
    return copy(tensor) if whole else tensor[places.to(tensor.device)]


def narrowed(tensor: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The tensor with size 1 along the axes (of those given) on which it is expanded."""
    for axis in range(tensor.dim()) if axes is None else axes:
        if tensor.shape[axis] > 1 and tensor.stride(axis) == 0:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def is_same_along(tensor: Tensor, axes: Sequence[int]) -> bool:
    """Whether a tensor does not change along its first axes, as a causal mask that every input has."""
    small = narrowed(tensor, axes)
    first, last = (small[tuple(place for _ in axes)] for place in (0, -1))
    return torch.equal(first, last) and bool((small == first).all())  # most that differ do so at the ends


def reshaped(tensor: Tensor, size: Sequence[int]) -> Tensor:
    """`tensor.reshape(size)` that copies only along axes on which the tensor varies."""
    size = _inferred(tensor, size)
    if tensor.numel() == 0:
        return tensor.reshape(size)
    small, target = tensor, []
    for source, wanted in _blocks(tuple(tensor.shape), size):
        constant = all(tensor.shape[axis] == 1 or tensor.stride(axis) == 0 for axis in source)
        small = narrowed(small, source) if constant else small
        target += [1 if constant else size[axis] for axis in wanted]
    return small.reshape(target).expand(size)


def _inferred(tensor: Tensor, size: Sequence[int]) -> tuple[int, ...]:
    known = math.prod(length for length in size if length != -1)
    return tuple(tensor.numel() // max(known, 1) if length == -1 else length for length in size)


@lru_cache(maxsize=4096)
def _blocks(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """The shortest runs of axes, before and after, that have as many elements."""
    blocks: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        source, wanted = [], []
        elements, reached = 1, 1
        if i < len(before):
            source.append(i)
            elements *= before[i]
            i += 1
        if j < len(after):
            wanted.append(j)
            reached *= after[j]
            j += 1
        while elements != reached:
            if elements < reached:
                source.append(i)
                elements *= before[i]
                i += 1
            else:
                wanted.append(j)
                reached *= after[j]
                j += 1
        blocks.append((source, wanted))
    return blocks


def joined(parts: Sequence[Tensor], axis: int) -> Tensor:
    """`torch.cat` of labels, which stays expanded along the axes on which all of them are."""
    axis %= parts[0].dim()
    others = [
        other
        for other in range(parts[0].dim())
        if other != axis and all(part.shape[other] == 1 or part.stride(other) == 0 for part in parts)
    ]
    whole = torch.cat([narrowed(part, others) for part in parts], axis)
    size = list(parts[0].shape)
    size[axis] = whole.shape[axis]
    return whole.expand(size)


def padded(label: Tensor, amounts: Sequence[int]) -> Tensor:
    """What `constant_pad_nd` makes of a label: the new elements are like their neighbours if those are all alike."""
    for place in range(len(amounts) // 2):
        axis, (before, after) = label.dim() - 1 - place, amounts[2 * place : 2 * place + 2]
        size = list(label.shape)
        if not varies(label, axis) and label.shape[axis]:
            size[axis] += before + after
            label = label.narrow(axis, 0, 1).expand(size)
            continue
        unknown = label.new_full((1,), BLANK)
        parts = [unknown.expand(*size[:axis], extra, *size[axis + 1 :]) for extra in (max(before, 0), max(after, 0))]
        kept = label.narrow(axis, max(-before, 0), size[axis] + min(before, 0) + min(after, 0))
        label = joined([parts[0], kept, parts[1]], axis)
    return label


def on_small(label: Tensor, apply: Callable[[Tensor], Any]) -> Any:
    """What a function makes of a label that may not stay an expanded one, unless that would take too much memory."""
    if label.numel() > _LARGEST:
        raise RuntimeError("too many elements")
    return apply(label)
