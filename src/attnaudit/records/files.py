"""Folders and files of a run: made or written as a whole, or an error that says why not."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from attnaudit.errors import RunFolderError

_TEMPORARY = ".tmp"


def file_name(label: str) -> str:
    """A label, such as that of a model, as part of a file name."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", label).strip("-.")[:64]


def make_folder(path: Path) -> None:
    """A folder to write into, and those above it.

    Raises:
        RunFolderError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error


def check_writable(folder: Path) -> None:
    """Make a folder and write into it, before anything takes time.

    Raises:
        RunFolderError: it cannot be made or written.
    """
    make_folder(folder)
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise cannot_write(folder, error) from error


def cannot_write(folder: Path, error: OSError) -> RunFolderError:
    """The error for a folder that cannot be written into."""
    return RunFolderError(f"{folder} cannot be written ({error.strerror}): give --out another folder.")


def is_temporary(path: Path) -> bool:
    """Whether a file is one that `write_whole` writes through; a killed writer leaves it behind."""
    return path.name.startswith(".") and path.name.endswith(_TEMPORARY)


def remove_file(path: Path) -> None:
    """Remove a file that is of no use.

    Raises:
        RunFolderError: it cannot be removed.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise RunFolderError(
            f"{path} cannot be removed ({error.strerror}): remove it yourself, and repeat the command."
        ) from error


def write_whole(path: Path, content: bytes) -> None:
    """Write through a temporary file beside it, so that readers and a killed writer never leave half a file.

    Raises:
        RunFolderError: it cannot be written, for want of space, rights or a folder; the old file is left as it was.
    """
    try:
        _write_through_temporary(path, content)
    except OSError as error:
        raise RunFolderError(
            f"{path} cannot be written ({error.strerror}): make room or give --out another place, and repeat the "
            "command."
        ) from error


def _write_through_temporary(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_TEMPORARY)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
