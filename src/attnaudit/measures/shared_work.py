"""Work that several measures need, done once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class SharedWork:
    """Keeps what functions computed from it, so that measures computed together share their work."""

    _results: dict[Callable[..., Any], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def shared(self, compute: Callable[[Self], T]) -> T:
        """`compute(self)`, computed at the first call; `compute` is a function of a module, not a new lambda."""
        if compute not in self._results:
            self._results[compute] = compute(self)
        result: T = self._results[compute]
        return result
