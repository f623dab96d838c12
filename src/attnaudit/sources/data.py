"""The folder of real weights and data named by `ATTNAUDIT_DATA`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from attnaudit.errors import InputError

VARIABLE = "ATTNAUDIT_DATA"


def data_folder() -> Path | None:
    """The folder, or None if the variable is unset or does not name a folder."""
    value = os.environ.get(VARIABLE)
    return Path(value) if value and Path(value).is_dir() else None


def data_file(name: str) -> Path | None:
    """A file or folder inside it, such as `imagenet_val` or `wikitext/wiki.test.raw`; None if it does not exist."""
    folder = data_folder()
    return folder / name if folder and (folder / name).exists() else None


def given_or_default(place: Path | None, classes: int, defaults: Mapping[int, str], what: str) -> Path:
    """The place that a user gave, or else the one in the folder for a model of that many classes.

    Raises:
        InputError: there is neither; it says `what` was looked for.
    """
    found = place or (data_file(defaults[classes]) if classes in defaults else None)
    if found is None:
        raise InputError(
            f"No {what} {classes} classes were found: give --images DIR or --parquet FILE, or set {VARIABLE} to the "
            "data folder."
        )
    return found


def data_weights(model: str) -> Path | None:
    """The weights for a model, `<any folder>/<model>.safetensors`; None if there are none."""
    folder = data_folder()
    return next(iter(sorted(folder.glob(f"*/{model}.safetensors"))), None) if folder else None
