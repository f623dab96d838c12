"""Operations that rearrange the elements of a tensor and change none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attnaudit.capture.tracing.labels import Move, narrowed, on_small, padded, reshaped

#: The result has the elements of its operand in the same order, whatever their type or place in memory.
COPIES = frozenset(("clone", "_to_copy", "contiguous", "detach", "alias", "lift_fresh", "lift", "to", "detach_"))
_RESHAPES = frozenset(("view", "_unsafe_view", "reshape", "_reshape_alias", "_reshape_copy"))
_REARRANGING = frozenset((
    "repeat", "index_select", "index", "gather", "pixel_shuffle", "pixel_unshuffle", "expand_copy", "permute_copy",
    "im2col", "channel_shuffle", "take_along_dim",
))  # fmt: skip
#: Their result depends on how the operand lies in memory, or on its bits.
_NOT_FOLLOWED = frozenset(("as_strided", "view_dtype"))


def move_of(func: Any, name: str, args: Sequence[Any], kwargs: Any, output: int | None) -> Move | None:
    """What an operation does to its first operand, if it only rearranges it; `output` counts several results."""
    if name in _NOT_FOLLOWED:
        return None
    rest = args[1:]  # a move lives longer than the operand, and must not keep it alive
    if name in _RESHAPES:
        size = args[1]
        return lambda tensor: reshaped(tensor, size)
    if name == "view_as_complex":
        return lambda tensor: tensor.select(-1, 0)
    if name == "view_as_real":
        return lambda tensor: tensor.unsqueeze(-1).expand(*tensor.shape, 2)
    if name in ("roll", "flip"):
        return lambda tensor: func(narrowed(tensor), *rest).expand(tensor.shape)  # the same along expanded axes
    if name == "constant_pad_nd":
        amounts = args[1]
        return lambda tensor: padded(tensor, amounts)
    if name in _REARRANGING:
        return lambda tensor: on_small(tensor, lambda small: func(small, *_beside(rest, small), **kwargs))
    if not func.is_view:
        return None
    if output is None:
        return lambda tensor: func(tensor, *rest, **kwargs)
    return lambda tensor: func(tensor, *rest, **kwargs)[output]


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


def torch_name(func: Any) -> str:
    """`add` for `aten::add.Tensor`; in-place operations keep their underscore."""
    name: str = func._schema.name.partition("::")[2]
    return "view_dtype" if name == "view" and func._overloadname == "dtype" else name


def changed_nothing(before: Tensor, after: Tensor) -> bool:
    """Whether an operation gave back what it got."""
    return before.shape == after.shape and torch.equal(before.to(after.dtype), after)
