"""What is known of the tensors of a forward pass, for as long as they live."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

from torch import Tensor

from attnaudit.capture.tracing.forms import Fact


class Facts:
    """Facts by tensor, the object and not its numbers; a fact is forgotten with its tensor.

    torch has a dictionary for this; a lookup in it takes 6 µs, and every operand of every operation is looked up.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], Fact]] = {}

    def get(self, tensor: Tensor) -> Fact | None:
        """What is known of a tensor, if anything."""
        entry = self._known.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def __setitem__(self, tensor: Tensor, fact: Fact) -> None:
        key = id(tensor)
        entry = self._known.get(key)
        if entry is not None and entry[0]() is tensor:
            self._known[key] = entry[0], fact
        else:
            self._known[key] = weakref.ref(tensor, lambda _: self._known.pop(key, None)), fact

    def items(self) -> Iterator[tuple[Tensor, Fact]]:
        """Every tensor that is alive, and what is known of it."""
        for reference, fact in list(self._known.values()):
            tensor = reference()
            if tensor is not None:
                tensor._fix_weakref()  # type: ignore[attr-defined]
                yield tensor, fact
