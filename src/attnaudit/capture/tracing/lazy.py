"""A value that is computed when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")

#: Chains longer than this are computed at once, so that asking for the end of one never recurses too deeply.
_LONGEST = 100


class Lazy(Generic[T]):
    """Computes its value once; most of what a forward pass could be asked is never asked."""

    __slots__ = ("_depth", "_make", "_value")

    def __init__(self, make: Callable[[], T], depth: int = 0) -> None:
        self._make: Callable[[], T] | None = make
        self._depth = depth
        self._value: Any = None
        if depth > _LONGEST:
            self.get()

    def get(self) -> T:
        """The value."""
        if self._make is not None:
            self._value = self._make()
            self._make, self._depth = None, 0
        value: T = self._value
        return value

    def then(self, change: Callable[[T], U]) -> Lazy[U]:
        """What `change` makes of the value."""
        return Lazy(lambda: change(self.get()), self._depth + 1)
