"""Models that were converted once: folders in Hugging Face layout in the user's cache, checked when they are read."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from attnaudit.errors import AttnAuditError, ModelError, RunFolderError, WeightsError
from attnaudit.records import json_file

VARIABLE = "XDG_CACHE_HOME"
ORIGIN = "origin.json"
#: From an empty folder to be filled, to what there is to say of the model.
Convert = Callable[[Path], tuple[str, ...]]


@dataclass(frozen=True)
class ModelOrigin:
    """What there is to say of a converted model, such as that its weights were quantised, and its files' SHA-256."""

    notes: tuple[str, ...]
    files: Mapping[str, str]


def cache_folder() -> Path:
    """Where converted models are, `attnaudit/models` in the user's cache."""
    own = os.environ.get(VARIABLE)
    return (Path(own) if own else Path.home() / ".cache") / "attnaudit" / "models"


def cached(key: str) -> Path | None:
    """The folder of a model that was converted; None if it was not."""
    folder = cache_folder() / key
    return folder if (folder / ORIGIN).is_file() else None


def converted(key: str, convert: Convert) -> Path:
    """The folder of a model, which is converted if it is not there yet; other processes wait for it.

    Raises:
        ModelError: the cache cannot be written.
    """
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{key}.lock"):
            return cached(key) or _filled(cache / key, convert)
    except OSError as error:
        raise ModelError(f"The cache {cache} cannot be written ({error}): set {VARIABLE} to another folder.") from error


def _filled(folder: Path, convert: Convert) -> Path:
    """A folder appears under its name only when it is whole: a conversion that is interrupted leaves nothing.

    One that is there without saying where it is from lost a file: it is replaced.
    """
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as scratch:
        whole = Path(scratch) / folder.name
        whole.mkdir()
        notes = convert(whole)
        files = {file.name: str(sha256_of(file)) for file in sorted(whole.iterdir())}
        json_file.write(whole / ORIGIN, ModelOrigin(notes, files))
        if folder.exists():
            shutil.rmtree(folder)
        whole.rename(folder)
    return folder


def check_converted(folder: Path) -> tuple[str, ...]:
    """What there is to say of a converted model, if its files are still the ones that were written.

    Raises:
        WeightsError: a file was changed, is missing or was added.
    """
    try:
        origin = json_file.read(ModelOrigin, folder / ORIGIN, "the origin of a converted model")
        found = {file.name: sha256_of(file) for file in folder.iterdir() if file.name != ORIGIN}
        faults = [name for name in sorted({*found, *origin.files}) if found.get(name) != origin.files.get(name)]
    except (RunFolderError, OSError) as error:
        raise _changed(folder, ORIGIN) from error
    if faults:
        raise _changed(folder, faults[0])
    return origin.notes


def _changed(folder: Path, name: str) -> AttnAuditError:
    return WeightsError(f"{folder / name} is not what was converted: delete {folder}, and it is converted again.")


def sha256_of(file: Path) -> str | None:
    """The SHA-256 of a file; None if it cannot be read."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None
