"""A training run, finished or still under way, opened again from its folder: its recipe and the rows with a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from attnaudit.errors import RunFolderError
from attnaudit.records.evidence import Evidence
from attnaudit.records.fields import Fields
from attnaudit.records.identity import SETTINGS
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.schema import OBSERVED

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
        table = self.rows.where(*columns, input=self.batches, reference=OBSERVED, measure=measures)
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
    recipe = settings.mapping("identity").mapping("recipe").content
    return TrainingRun(path, recipe, settings.number("steps_per_epoch"), batches, rows)


def training_settings(path: Path) -> Fields:
    """The content of a training's `run.json`, which has a recipe and says how many steps an epoch had.

    Raises:
        RunFolderError: it is no folder of a training run.
    """
    if not path.is_dir():
        raise RunFolderError(f"There is no folder {path}: give one that attnaudit train wrote.")
    folder = RunFolder(path)
    settings = Fields(folder.settings(), folder.settings_file, SETTINGS)
    identity = settings.mapping("identity")
    if not identity.has("recipe"):
        kind = "an audit" if identity.has("inputs") else "a run without a recipe"
        raise RunFolderError(f"{path} holds {kind}, not a training run: give a folder that attnaudit train wrote.")
    identity.mapping("recipe")
    if settings.number("steps_per_epoch") <= 0:
        raise settings.fault("steps_per_epoch is no number above 0")
    return settings
