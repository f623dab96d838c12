"""Training: recipes, the training loop, and a monitor of attention for any training loop.

>>> from attnaudit import training
>>> training.Monitor(model, batch, out="run").attach(optimizer)  # doctest: +SKIP

Names are imported when first used, so that using one of them does not import the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnaudit.records.recipe import Recipe
    from attnaudit.training.course import Course, open_course
    from attnaudit.training.distributed import DeviceSettings
    from attnaudit.training.loop import train
    from attnaudit.training.monitor import Monitor
    from attnaudit.training.perplexity import robust_perplexity
    from attnaudit.training.recipe_file import read_recipe
    from attnaudit.training.tasks import read_data
    from attnaudit.training.training_folder import TrainingResult

_HOMES = {
    "Course": "attnaudit.training.course",
    "DeviceSettings": "attnaudit.training.distributed",
    "Monitor": "attnaudit.training.monitor",
    "Recipe": "attnaudit.records.recipe",
    "TrainingResult": "attnaudit.training.training_folder",
    "open_course": "attnaudit.training.course",
    "read_data": "attnaudit.training.tasks",
    "read_recipe": "attnaudit.training.recipe_file",
    "robust_perplexity": "attnaudit.training.perplexity",
    "train": "attnaudit.training.loop",
}

__all__ = [
    "Course",
    "DeviceSettings",
    "Monitor",
    "Recipe",
    "TrainingResult",
    "open_course",
    "read_data",
    "read_recipe",
    "robust_perplexity",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'attnaudit.training' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
