"""Training under the microscope: recipes, the training loop, and a monitor that any loop can carry.

>>> from attnaudit import training
>>> training.Monitor(model, batch, out="run").attach(optimizer)  # doctest: +SKIP

Names are imported when first used: whoever needs one of them need not pay for the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnaudit.records.recipe import Recipe
    from attnaudit.training.finished import primal_evidence
    from attnaudit.training.loop import train
    from attnaudit.training.monitor import Monitor
    from attnaudit.training.perplexity import robust_perplexity
    from attnaudit.training.place import Place
    from attnaudit.training.recipe_file import read_recipe
    from attnaudit.training.task import read_halves

_HOMES = {
    "Monitor": "attnaudit.training.monitor",
    "Place": "attnaudit.training.place",
    "Recipe": "attnaudit.records.recipe",
    "primal_evidence": "attnaudit.training.finished",
    "read_halves": "attnaudit.training.task",
    "read_recipe": "attnaudit.training.recipe_file",
    "robust_perplexity": "attnaudit.training.perplexity",
    "train": "attnaudit.training.loop",
}

__all__ = ["Monitor", "Place", "Recipe", "primal_evidence", "read_halves", "read_recipe", "robust_perplexity", "train"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'attnaudit.training' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
