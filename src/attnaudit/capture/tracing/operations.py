"""What torch says of an operation that it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

#: The result has the elements of its operand in the same order, whatever their type or place in memory.
_COPIES = frozenset(("clone", "_to_copy", "contiguous", "detach", "alias", "lift_fresh", "lift", "to", "detach_"))

#: They change the axes of a tensor in place, and not its elements.
_TURNS = frozenset(("transpose_", "t_", "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_"))


@dataclass(frozen=True, slots=True, eq=False)
class TorchOp:
    """An operation, looked up once: to ask torch each time takes longer than most of what follows from the answer.

    `turns` is what an operation such as `transpose_` does to a tensor in place, out of place.
    """

    func: Any
    name: str
    copies: bool
    is_view: bool
    is_mutable: bool
    elementwise: bool
    turns: TorchOp | None = None


def operation_of(func: Any) -> TorchOp:
    """What torch says of `aten::add.Tensor`, whose name is `add`; in-place operations keep their underscore."""
    name: str = func._schema.name.partition("::")[2]
    if name == "view" and func._overloadname == "dtype":
        name = "view_dtype"
    return TorchOp(
        func,
        name,
        name in _COPIES,
        func.is_view,
        func._schema.is_mutable,
        torch.Tag.pointwise in func.tags,
        _out_of_place(func, name),
    )


def _out_of_place(func: Any, name: str) -> TorchOp | None:
    """`squeeze` for `squeeze_`, and so on."""
    if torch.Tag.inplace_view not in func.tags or name not in _TURNS:
        return None
    packet = getattr(torch.ops.aten, name.removesuffix("_"))
    return operation_of(packet.int if name == "transpose_" else getattr(packet, func._overloadname or "default"))
