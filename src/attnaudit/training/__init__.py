"""Watching attention while a model trains.

>>> from attnaudit import training
>>> training.Monitor(model, batch, out="run").attach(optimizer)  # doctest: +SKIP

Names are imported when first used: whoever needs one of them need not pay for the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnaudit.training.monitor import Monitor

_HOMES = {"Monitor": "attnaudit.training.monitor"}

__all__ = ["Monitor"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'attnaudit.training' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
