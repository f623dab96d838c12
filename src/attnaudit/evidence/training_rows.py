"""A training run, finished or still under way, opened again from its folder: its recipe and the rows with a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from attnaudit.errors import RunFolderError
from attnaudit.evidence.folder import RunFolder
from attnaudit.evidence.reading import Evidence
from attnaudit.evidence.schema import OBSERVED

#: The fixed batches a training is watched on, which name the rows that are means over a batch.
BATCHES = ("train", "test")


@dataclass(frozen=True)
class TrainingRun:
    """What the folder of a training run holds; `batches` are those of `BATCHES` that were measured."""

    path: Path
    recipe: dict[str, Any]
    steps_per_epoch: float
    batches: tuple[str, ...]
    rows: Evidence

    @property
    def name(self) -> str:
        """Of its recipe."""
        return str(self.recipe.get("name", self.folder))

    @property
    def folder(self) -> str:
        """The folder's own name."""
        return self.path.resolve().name

    def batch_means(self, measures: Sequence[str]) -> pa.Table:
        """Rows of these measures that are means over a whole batch: one per step, batch, layer and head.

        Raises:
            RunFolderError: one of them was not measured.
        """
        columns = ("step", "input", "layer", "head", "dim", "measure", "value")
        table = self.rows.where(*columns, input=self.batches, control=OBSERVED, measure=measures)
        if missing := sorted({*measures} - {*table["measure"].unique().to_pylist()}):
            raise RunFolderError(f"{self.path} has no rows of {', '.join(missing)}: train again to measure them.")
        return table


def open_training(path: Path) -> TrainingRun:
    """Open the folder of a training run, whether it is finished or not.

    Raises:
        RunFolderError: it is no folder of a training run, or nothing was measured in it.
    """
    settings = training_settings(path)
    rows = RunFolder(path).evidence_so_far()
    if not len(rows):
        raise RunFolderError(f"{path} holds a training run in which nothing is measured yet: repeat its command.")
    found = {name for (name,) in rows.combinations("input")}
    batches = tuple(name for name in BATCHES if name in found)
    if not batches:
        raise RunFolderError(
            f"{path} has no rows of a batch named {' or '.join(BATCHES)}, only of {', '.join(sorted(found))[:80]}."
        )
    return TrainingRun(path, settings["identity"]["recipe"], float(settings["steps_per_epoch"]), batches, rows)


def training_settings(path: Path) -> dict[str, Any]:
    """The content of a training's `run.json`.

    Raises:
        RunFolderError: it is no folder of a training run.
    """
    if not path.is_dir():
        raise RunFolderError(f"There is no folder {path}: give one that attnaudit train wrote.")
    folder = RunFolder(path)
    settings = folder.settings()
    identity = settings["identity"]
    recipe = identity.get("recipe") if isinstance(identity, dict) else None
    if not isinstance(recipe, dict):
        kind = "an audit" if isinstance(identity, dict) and "inputs" in identity else "a run without a recipe"
        raise RunFolderError(f"{path} holds {kind}, not a training run: give a folder that attnaudit train wrote.")
    steps = settings.get("steps_per_epoch")
    if not isinstance(steps, (int, float)) or not steps > 0:
        raise RunFolderError(f"{folder.settings_file} does not say how many steps_per_epoch there were.")
    return settings
