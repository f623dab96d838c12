"""How a training went: its recipe, its seed and a record per epoch, from its folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnaudit.errors import RunFolderError
from attnaudit.evidence.training_rows import training_settings

HISTORY = "history.json"


@dataclass(frozen=True)
class Course:
    """The epochs of a training that are done; `data` are the fingerprints of its halves."""

    path: Path
    recipe: dict[str, Any]
    seed: int
    data: tuple[str, ...]
    history: tuple[dict[str, float], ...]

    @property
    def name(self) -> str:
        """Recipe and seed."""
        return f"{self.recipe['name']}, seed {self.seed}"

    @property
    def of_text(self) -> bool:
        """Whether a language model was trained, which has perplexities and no accuracies."""
        return self.recipe.get("task") == "text"


def open_course(path: Path) -> Course:
    """Open the folder of a training, finished or not.

    Raises:
        RunFolderError: it is no folder of a training, or its history cannot be read.
    """
    settings = training_settings(path)
    try:
        history = json.loads((path / HISTORY).read_text())
    except FileNotFoundError:
        history = []
    except (ValueError, OSError) as error:
        raise RunFolderError(f"{path / HISTORY} is not readable as the history of a training.") from error
    if not isinstance(history, list) or not all(isinstance(record, dict) for record in history):
        raise RunFolderError(f"{path / HISTORY} is not readable as the history of a training: it lists no epochs.")
    identity = settings["identity"]
    return Course(path, identity["recipe"], int(identity["seed"]), tuple(identity.get("data", ())), tuple(history))
