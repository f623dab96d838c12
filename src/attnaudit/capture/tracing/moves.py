"""Operations that rearrange the elements of a tensor and change none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attnaudit.capture.tracing.forms import Fact, Product
from attnaudit.capture.tracing.labels import LastingMove, Move, compact, narrowed, on_small, padded, reshaped
from attnaudit.capture.tracing.operations import TorchOp
from attnaudit.capture.tracing.unfolding import unfolded

_RESHAPES = frozenset(("view", "_unsafe_view", "reshape", "_reshape_alias", "_reshape_copy"))
_REARRANGING = frozenset((
    "repeat", "index_select", "index", "gather", "pixel_shuffle", "pixel_unshuffle", "expand_copy", "permute_copy",
    "channel_shuffle", "take_along_dim",
))  # fmt: skip
#: Their result depends on how the operand lies in memory, or on its bits.
_NOT_FOLLOWED = frozenset(("as_strided", "view_dtype"))


def move_of(operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], output: int | None) -> Move | None:
    """What an operation does to its first operand, if it only rearranges it; `output` counts several results."""
    func, name = operation.func, operation.name
    if name in _NOT_FOLLOWED:
        return None
    rest = args[1:]  # a move lives longer than the operand, and must not keep it alive
    if name in _RESHAPES:
        return Reshape(tuple(args[1]))
    if name == "view_as_complex":
        return lambda tensor: tensor.select(-1, 0)
    if name == "view_as_real":
        return lambda tensor: tensor.unsqueeze(-1).expand(*tensor.shape, 2)
    if name in ("roll", "flip"):
        return lambda tensor: func(narrowed(tensor), *rest).expand(tensor.shape)  # the same along expanded axes
    if name == "constant_pad_nd":
        amounts = args[1]
        return lambda tensor: padded(tensor, amounts)
    if name == "im2col":
        return lambda tensor: on_small(tensor, lambda small: unfolded(small, lambda part: func(part, *rest, **kwargs)))
    if name in _REARRANGING:
        return lambda tensor: on_small(tensor, lambda small: func(small, *_beside(rest, small), **kwargs))
    return View(func, _frozen(rest), tuple(kwargs.items()), output) if operation.is_view else None


@dataclass(frozen=True, slots=True)
class Reshape(LastingMove):
    """Another size for the same elements."""

    size: tuple[int, ...]

    def __call__(self, tensor: Tensor) -> Tensor:
        """The tensor with this size."""
        return reshaped(tensor, self.size)


@dataclass(frozen=True, slots=True)
class View(LastingMove):
    """A view of torch's own, such as a transpose; `output` counts several results."""

    func: Any
    rest: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]
    output: int | None

    def __call__(self, tensor: Tensor) -> Tensor:
        """The view of another tensor of the same shape."""
        seen = self.func(tensor, *self.rest, **dict(self.options))
        view: Tensor = seen if self.output is None else seen[self.output]
        return view


@dataclass(frozen=True, slots=True)
class Taken:
    """Elements from other places along an axis, as sorting takes them."""

    axis: int
    index: Tensor

    def __call__(self, tensor: Tensor) -> Tensor:
        """The elements of another tensor from there."""
        taken = on_small(tensor, lambda small: small.gather(self.axis, self.index.to(small.device)))
        return compact(taken).expand(taken.shape)


def turned(operation: TorchOp, args: Sequence[Any], kwargs: Mapping[str, Any], fact: Fact) -> Fact:
    """The fact of a tensor whose axes were changed in place by `transpose_` and the like, called with these."""
    move = move_of(operation, args, kwargs, None)
    assert move is not None
    if not isinstance(fact.form, Product):
        return fact.moved(move, args[0].shape)
    before = fact.label("row")  # the tensor itself no longer has the shape that it had
    return replace(fact, form=None, labels=None) if before is None else fact.moved(move, before.shape)


def _frozen(arguments: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(tuple(part) if isinstance(part, list) else part for part in arguments)


def _beside(args: Sequence[Any], tensor: Tensor) -> list[Any]:
    """Indices on the device of a label."""

    def move(argument: Any) -> Any:
        if isinstance(argument, (list, tuple)):
            return [move(part) for part in argument]
        return argument.to(tensor.device) if isinstance(argument, Tensor) else argument

    return [move(argument) for argument in args]


def is_number(argument: Any) -> bool:
    """Whether an operand is one number, for all elements: of Python, or in a tensor with a single element."""
    if isinstance(argument, Tensor):
        return argument.numel() == 1 and argument.is_floating_point() and not argument.is_meta
    return isinstance(argument, (int, float)) and not isinstance(argument, bool)


def changed_nothing(before: Tensor, after: Tensor) -> bool:
    """Whether an operation gave back what it got."""
    return before.shape == after.shape and torch.equal(before.to(after.dtype), after)
