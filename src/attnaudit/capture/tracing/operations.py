"""What torch says of an operation that it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: The result has the elements of its operand in the same order, whatever their type or place in memory.
_COPIES = frozenset(("clone", "_to_copy", "contiguous", "detach", "alias", "lift_fresh", "lift", "to", "detach_"))


@dataclass(frozen=True, slots=True, eq=False)
class TorchOp:
    """An operation, looked up once: to ask torch each time takes longer than most of what follows from the answer."""

    func: Any
    name: str
    copies: bool
    is_view: bool
    is_mutable: bool


def operation_of(func: Any) -> TorchOp:
    """What torch says of `aten::add.Tensor`, whose name is `add`; in-place operations keep their underscore."""
    name: str = func._schema.name.partition("::")[2]
    if name == "view" and func._overloadname == "dtype":
        name = "view_dtype"
    return TorchOp(func, name, name in _COPIES, func.is_view, func._schema.is_mutable)
