"""Work on queries and keys that a head and its references share, done once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from torch import Tensor

from attnaudit.capture.heads import Heads

T = TypeVar("T")


class LastResult(Generic[T]):
    """The last result of a function of queries and keys: references that change neither follow one another."""

    def __init__(self, function: Callable[[Heads], T]) -> None:
        self._function = function
        self._last: tuple[Tensor, Tensor, T] | None = None

    def __call__(self, heads: Heads) -> T:
        """The result for these heads, computed unless it is that of the last ones."""
        if self._last is None or self._last[0] is not heads.query or self._last[1] is not heads.key:
            self._last = heads.query, heads.key, self._function(heads)
        return self._last[2]
