"""What a training leaves: weights, a card that says how to build and feed them, and the course of its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import nn

from attnaudit._version import __version__
from attnaudit.numerics.digest import digest
from attnaudit.records import json_file
from attnaudit.records.card import CARD
from attnaudit.records.files import write_whole
from attnaudit.records.recipe import Recipe, TextRecipe
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.training import HISTORY, ImageEpoch, TextEpoch
from attnaudit.sources.trained_models import WEIGHTS
from attnaudit.training.task import Task

AVERAGE = "average.safetensors"


@dataclass(frozen=True)
class Trained:
    """A finished training: its folder, a record per epoch, and the last of them in words."""

    path: Path
    recipe: Recipe
    seed: int
    history: tuple[Mapping[str, float], ...]
    data: Mapping[str, Any]
    words: str

    @property
    def facts(self) -> dict[str, Any]:
        """The last epoch's numbers, and what they belong to."""
        of = {"recipe": self.recipe.name, "seed": self.seed, "epochs": self.recipe.epochs}
        return {**of, **self.data, **self.history[-1]}

    def __repr__(self) -> str:
        return f"Trained({self.recipe.name}, seed {self.seed}: {self.words})"


def setting(recipe: Recipe, data: Sequence[str]) -> str:
    """A name for everything but model and seed that decides a training: what has the same was trained alike."""
    left_out = ("name", "about", "task", "model", "monitor")
    return digest({name: value for name, value in json_file.plain(recipe).items() if name not in left_out}, list(data))


def write_outcome(trained: Trained, folder: RunFolder, task: Task, model: nn.Module, average: nn.Module | None) -> None:
    """Weights first, the summary last: a folder with a summary is complete."""
    write_whole(folder.path / WEIGHTS, _tensors(model))
    if average is not None:
        write_whole(folder.path / AVERAGE, _tensors(average))
    json_file.write(folder.path / CARD, task.card({**trained.facts, "attnaudit": __version__}))
    folder.write_summary({"training": trained.facts})


def write_history(folder: Path, recipe: Recipe, history: Sequence[Mapping[str, Any]]) -> None:
    """A record per finished epoch, for whoever looks in before the end."""
    kind = TextEpoch if isinstance(recipe, TextRecipe) else ImageEpoch
    json_file.write(folder / HISTORY, [kind(**record) for record in history])


def _tensors(model: nn.Module) -> bytes:
    content: bytes = save({name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()})
    return content
