"""How a training went: its recipe, its seed and a record per epoch, from its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnaudit.records.attention_fields import check_attention
from attnaudit.records.fields import Fields
from attnaudit.records.training_rows import training_settings

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
    """Open the folder of a training, finished or not, in which everything is that claims read.

    Raises:
        RunFolderError: it is no folder of a training, or a file of it says less than `attnaudit train` writes.
    """
    identity = training_settings(path).mapping("identity")
    recipe = identity.mapping("recipe")
    _check_recipe(recipe)
    try:
        history = Fields.listed_in(path / HISTORY, "the history of a training", "epochs")
    except FileNotFoundError:
        history = []
    data = tuple(identity.items("data")) if "data" in identity else ()
    records = tuple(record.content for record in history)
    course = Course(path, recipe.content, identity.whole("seed", least=0), data, records)
    for record in history:
        record.whole("epoch", least=1)
        if not course.of_text:
            record.number("test_accuracy")
    return course


def _check_recipe(recipe: Fields) -> None:
    recipe.text("name")
    check_attention(recipe.mapping("model"))
    if "ksvd_weight" in recipe:
        recipe.number("ksvd_weight")
    if "monitor" in recipe:
        monitor = recipe.mapping("monitor")
        for inputs in ("images", "contexts"):
            if inputs in monitor:
                monitor.whole(inputs, least=0)
