"""What a monitor has measured so far, from the folder of a monitor or of a training, which may still be running."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from attnaudit.errors import RunFolderError
from attnaudit.records.evidence import Evidence
from attnaudit.records.frames import data_frame
from attnaudit.records.lock import LockHolder
from attnaudit.records.monitoring import MonitorFile
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.run_kind import RunKind
from attnaudit.records.training import BATCHES, AnyEpoch, open_training
from attnaudit.training.monitor_log import Reading, read, reading_layers

#: More steps than a curve can show are read at even distances.
MOST_STEPS = 120


@dataclass(frozen=True)
class Course:
    """How attention changed during a training, up to the last step that was measured.

    Attributes:
        path: the folder.
        name: the model, or the recipe and seed of a training.
        parts: the part of every step that was measured, in order.
        batches: the fixed batches, by name.
        readings: of all steps or, if there are very many, of some at even distances.
        history: the finished epochs of a training; none of a monitor alone.
        total: the steps that a training will take; unknown for a monitor alone.
        writer: the process that is still writing; None if none is.
    """

    path: Path
    name: str
    parts: Mapping[int, str]
    batches: tuple[str, ...]
    readings: tuple[Reading, ...]
    history: tuple[AnyEpoch, ...] = ()
    total: int | None = None
    writer: LockHolder | None = None

    @property
    def last_step(self) -> int:
        """The last step of which anything is known."""
        return max([*self.parts, *(epoch.step for epoch in self.history)], default=0)

    @cached_property
    def rows(self) -> Evidence:
        """The rows of all steps, to be questioned."""
        return RunFolder(self.path).parts.evidence(list(self.parts.values()))

    @cached_property
    def evidence(self) -> pa.Table:
        """The same as a pyarrow table."""
        return self.rows.table()

    def frame(self) -> Any:
        """The same as a data frame of pandas or polars, whichever is installed.

        Raises:
            MissingExtraError: neither is.
        """
        return data_frame(self.evidence)

    def layers(self) -> pa.Table:
        """A row per batch, theory and layer at the last step: means of every measure over heads, and scores."""
        if not self.readings:
            raise RunFolderError(f"{self.path} has no measurements yet: wait for its first step.")
        reading = self.readings[-1]
        rows = RunFolder(self.path).parts.evidence([self.parts[reading.step]])
        return reading_layers(reading, rows.table())

    def __repr__(self) -> str:
        steps = f"{len(self.parts)} steps up to {max(self.parts):,}" if self.parts else "no steps yet"
        return f"Course({self.name}: {steps}, in {self.path})"


def open_course(
    path: str | Path,
    *,
    progress: Callable[[int, int, str], None] = lambda done, total, words: None,
    known: MutableMapping[str, Reading] | None = None,
) -> Course:
    """Open the folder of a monitor, or of a training, finished or not.

    Args:
        path: the folder.
        progress: told of every step that was read.
        known: readings from an earlier call, by part, which are not read again; new ones are added.

    Raises:
        RunFolderError: it is not such a folder, or a file of it is damaged.
    """
    folder = RunFolder(Path(path))
    if folder.path.is_dir() and folder.kind is RunKind.TRAINING:
        training = open_training(folder.path)
        parts = _ordered(training.settings.steps)
        total = training.recipe.epochs * training.settings.steps_per_epoch
        readings = _readings(folder, training.recipe.name, BATCHES, parts, progress, known)
        return Course(folder.path, training.name, parts, BATCHES, readings, training.history, total, folder.writer)
    settings = folder.settings(MonitorFile, RunKind.MONITOR)
    (model,) = settings.identity.models
    batches = tuple(name for name, _ in settings.identity.inputs)
    parts = _ordered(settings.steps)
    readings = _readings(folder, model, batches, parts, progress, known)
    return Course(folder.path, model, parts, batches, readings, writer=folder.writer)


def _ordered(steps: Mapping[str, str] | None) -> dict[int, str]:
    return dict(sorted((int(step), key) for step, key in (steps or {}).items()))


def _readings(
    folder: RunFolder,
    model: str,
    batches: tuple[str, ...],
    parts: Mapping[int, str],
    progress: Callable[[int, int, str], None],
    known: MutableMapping[str, Reading] | None,
) -> tuple[Reading, ...]:
    found, files = [], folder.parts.files()
    shown = _spread(list(parts))
    for place, step in enumerate(shown):
        file = files.get(parts[step])
        name = "" if file is None else file.name  # changes with the content, unlike the key
        reading = (known or {}).get(name)
        if reading is None:
            reading = read(step, folder.parts.evidence([parts[step]]).table(), batches, model)
            if known is not None:
                known[name] = reading
        found.append(reading)
        progress(place + 1, len(shown), "reading steps")
    return tuple(found)


def _spread(steps: list[int]) -> list[int]:
    """All steps, or some at even distances, with the first and the last."""
    if len(steps) <= MOST_STEPS:
        return steps
    last = len(steps) - 1
    return [steps[round(place * last / (MOST_STEPS - 1))] for place in range(MOST_STEPS)]
