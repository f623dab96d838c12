"""What a training leaves: weights, a card that says how to build and feed them, and the course of accuracy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import nn

from attnaudit._version import __version__
from attnaudit.evidence.folder import RunFolder, write_whole
from attnaudit.evidence.training_course import HISTORY
from attnaudit.sources.model import CARD
from attnaudit.sources.preprocess import IMAGENET_MEAN, IMAGENET_STD
from attnaudit.sources.trained_models import WEIGHTS, Card
from attnaudit.training.recipe import Recipe

AVERAGE = "average.safetensors"


@dataclass(frozen=True)
class Trained:
    """A finished training: its folder, and a record per epoch."""

    path: Path
    recipe: Recipe
    seed: int
    history: tuple[Mapping[str, float], ...]

    @property
    def facts(self) -> dict[str, Any]:
        """The last epoch's numbers, and what they belong to."""
        return {"recipe": self.recipe.name, "seed": self.seed, "epochs": self.recipe.epochs, **self.history[-1]}

    def __repr__(self) -> str:
        last = self.history[-1]
        averaged = last.get("average_test_accuracy")
        more = "" if averaged is None else f", averaged weights {averaged:.2%}"
        return f"Trained({self.recipe.name}, seed {self.seed}: test accuracy {last['test_accuracy']:.2%}{more})"


def write_outcome(
    trained: Trained, folder: RunFolder, model: nn.Module, average: nn.Module | None, labels: tuple[str, ...] | None
) -> None:
    """Weights first, the summary last: a folder with a summary is complete."""
    write_whole(folder.path / WEIGHTS, _tensors(model))
    if average is not None:
        write_whole(folder.path / AVERAGE, _tensors(average))
    mean, std = (tuple(round(float(n), 3) for n in numbers) for numbers in (IMAGENET_MEAN, IMAGENET_STD))
    facts = {**trained.facts, "attnaudit": __version__}
    card = Card(trained.recipe.name, trained.recipe.model, mean, std, labels, facts)  # type: ignore[arg-type]
    write_whole(folder.path / CARD, card.as_json().encode())
    folder.write_summary({"training": trained.facts})


def write_history(folder: Path, history: Sequence[Mapping[str, float]]) -> None:
    """A record per finished epoch, for whoever looks in before the end."""
    write_whole(folder / HISTORY, (json.dumps(history, indent=1) + "\n").encode())


def _tensors(model: nn.Module) -> bytes:
    content: bytes = save({name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()})
    return content
