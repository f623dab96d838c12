"""A monitor as a callback of the trainers people use."""

from __future__ import annotations

import importlib
import sys
import typing
from contextlib import suppress
from typing import Any

from attnaudit.extras import optional

#: Where Lightning's classes are, under its new name and its old.
_LIGHTNING = ("lightning.pytorch", "pytorch_lightning")


class Watcher(typing.Protocol):
    """What a callback tells a monitor."""

    def begin(self, step: int) -> None:
        """Training starts, or goes on, at a step."""

    def after_step(self, step: int) -> None:
        """A step was taken; told again for the same step where a trainer accumulates gradients."""

    def after_epoch(self, step: int) -> None:
        """An epoch is over, at a step."""


def lightning_callback(watcher: Watcher) -> Any:
    """A `lightning.pytorch.Callback`; `global_step` counts steps of optimisers, not batches.

    Raises:
        MissingExtraError: Lightning is not installed.
    """
    base: Any = _lightning().Callback

    class MonitorCallback(base):  # type: ignore[misc]
        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            watcher.begin(trainer.global_step)

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            watcher.after_step(trainer.global_step)

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            watcher.after_epoch(trainer.global_step)

    return MonitorCallback()


def trainer_callback(watcher: Watcher) -> Any:
    """A `transformers.TrainerCallback`.

    Raises:
        MissingExtraError: transformers is not installed.
    """
    base: Any = optional("transformers", "hf", "A callback for transformers' Trainer").TrainerCallback

    class MonitorCallback(base):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, reference: Any, **more: Any) -> None:
            watcher.begin(state.global_step)

        def on_step_end(self, args: Any, state: Any, reference: Any, **more: Any) -> None:
            watcher.after_step(state.global_step)

        def on_epoch_end(self, args: Any, state: Any, reference: Any, **more: Any) -> None:
            watcher.after_epoch(state.global_step)

    return MonitorCallback()


def _lightning() -> Any:
    """The Lightning that the user has imported, else one that is installed: a trainer takes its own callbacks only."""
    for name in sorted(_LIGHTNING, key=lambda known: known not in sys.modules):
        with suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    return optional(_LIGHTNING[0], "lightning", "A Lightning callback")
