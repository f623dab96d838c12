"""Counting the steps an optimiser really takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from attnaudit.errors import UsageError


class StepCounter:
    """Calls `on_step` with the number of steps taken whenever it may be `due`.

    An accumulated micro-batch takes no step, nor does one that a `GradScaler` skips. A fused optimiser is called for
    skipped steps too and finds out on its device; to ask every time would make the processor wait for the device, so
    what is skipped is summed there and read when a step would be due.
    """

    def __init__(
        self, optimizer: Optimizer, due: Callable[[int], bool], on_step: Callable[[int], object], first: int
    ) -> None:
        inner = getattr(optimizer, "optimizer", optimizer)  # what Accelerate wraps
        if not isinstance(inner, Optimizer):
            raise UsageError(
                f"{type(optimizer).__name__} is no torch optimiser: call monitor.measure(step) in the loop instead."
            )
        self._count = first
        self._skipped: Tensor | None = None
        self._due = due
        self._on_step = on_step
        self._handle = inner.register_step_post_hook(self._stepped)

    def remove(self) -> None:
        """Stop counting."""
        self._handle.remove()

    def _stepped(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._count += 1
        overflow = getattr(optimizer, "found_inf", None)
        if overflow is not None:
            self._skipped = overflow.clone() if self._skipped is None else self._skipped + overflow
        if not self._due(self._count):
            return
        if self._skipped is not None:
            self._count -= int(self._skipped.item())
            self._skipped = None
        self._on_step(self._count)
