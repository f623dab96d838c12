"""The monitor in other people's training loops: optimisers, Lightning, transformers."""

from __future__ import annotations

import importlib
import sys
import typing
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from attnaudit.errors import UsageError
from attnaudit.extras import optional

#: Lightning's package, under its new name and its old.
_LIGHTNING = ("lightning.pytorch", "pytorch_lightning")


class StepListener(typing.Protocol):
    """What a callback reports to a monitor."""

    def begin(self, step: int) -> None:
        """Training starts, or is resumed, at a step."""

    def after_step(self, step: int) -> None:
        """A step was taken; repeated for the same step if a trainer accumulates gradients."""

    def after_epoch(self, step: int) -> None:
        """An epoch ended at a step."""

    def detach(self) -> None:
        """Training ended."""


class StepCounter:
    """Counts the steps that an optimiser takes, and calls `on_step` with their number if it is `due`.

    Accumulated micro-batches take no step, nor do those that a `GradScaler` skips. A fused optimiser is also called
    for skipped steps and finds out on its device. Asking it every time would make the CPU wait for the device, so
    skipped steps are summed on the device, and read when a step would be due.
    """

    def __init__(
        self, optimizer: Optimizer, due: Callable[[int], bool], on_step: Callable[[int], object], first: int
    ) -> None:
        inner = getattr(optimizer, "optimizer", optimizer)  # what Accelerate wraps
        if not isinstance(inner, Optimizer):
            raise UsageError(
                f"attach needs a torch optimiser, got {type(optimizer).__name__}: call monitor.measure(step) in the "
                "loop instead."
            )
        self._count = first
        self._skipped: Tensor | None = None
        self._due = due
        self._on_step = on_step
        self._handle = inner.register_step_post_hook(self._after_call)

    def remove(self) -> None:
        """Stop counting."""
        self._handle.remove()

    def _after_call(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
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


def lightning_callback(listener: StepListener) -> Any:
    """A `lightning.pytorch.Callback`; its `global_step` counts steps of optimisers, not batches.

    Raises:
        MissingExtraError: Lightning is not installed.
    """
    base: Any = _lightning().Callback

    class LightningCallback(base):  # type: ignore[misc]
        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            listener.begin(trainer.global_step)

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            listener.after_step(trainer.global_step)

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            listener.after_epoch(trainer.global_step)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            listener.detach()

    return LightningCallback()


def _lightning() -> Any:
    """The Lightning that is imported already, else an installed one: a trainer takes only its own callbacks."""
    for package in sorted(_LIGHTNING, key=lambda known: known not in sys.modules):
        with suppress(ModuleNotFoundError):
            return importlib.import_module(package)
    return optional(_LIGHTNING[0], "lightning", "A Lightning callback")


def transformers_callback(listener: StepListener) -> Any:
    """A `transformers.TrainerCallback`.

    Raises:
        MissingExtraError: transformers is not installed.
    """
    base: Any = optional("transformers", "hf", "A callback for transformers' Trainer").TrainerCallback

    class TransformersCallback(base):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            listener.begin(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            listener.after_step(state.global_step)

        def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            listener.after_epoch(state.global_step)

        def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            listener.detach()

    return TransformersCallback()
