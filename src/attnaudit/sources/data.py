"""The folder of real weights and data that `ATTNAUDIT_DATA` names, if any."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "ATTNAUDIT_DATA"


def data_folder() -> Path | None:
    """The folder, or None where the variable is unset or names no folder."""
    value = os.environ.get(VARIABLE)
    return Path(value) if value and Path(value).is_dir() else None


def data_file(name: str) -> Path | None:
    """A file or folder in it, such as `imagenet_val` or `wikitext/wiki.test.raw`."""
    folder = data_folder()
    return folder / name if folder and (folder / name).exists() else None


def data_weights(model: str) -> Path | None:
    """Its weights for a model name: `<any folder>/<model>.safetensors`."""
    folder = data_folder()
    return next(iter(sorted(folder.glob(f"*/{model}.safetensors"))), None) if folder else None
