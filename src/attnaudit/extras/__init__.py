"""Importing optional dependencies when they are used, with an error that says how to get them."""

from __future__ import annotations

import importlib
from types import ModuleType

from attnaudit.errors import MissingExtraError


def optional(module: str, extra: str, purpose: str) -> ModuleType:
    """The module, or `MissingExtraError` naming the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed: pip install 'attnaudit[{extra}]'."
        ) from error
