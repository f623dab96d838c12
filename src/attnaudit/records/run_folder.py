"""A run on disk: its lock, settings, parts and summary. Files are written whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from attnaudit.errors import RunFolderError
from attnaudit.records import json_file
from attnaudit.records.files import is_temporary, make_folder, remove_file
from attnaudit.records.identity import SETTINGS, begins, check_ours, read_header
from attnaudit.records.json_file import shortened
from attnaudit.records.lock import FolderLock, LockHolder, is_lock_file
from attnaudit.records.part_folder import PartFolder
from attnaudit.records.run_kind import RunKind

#: Of run folders: raised when older ones can no longer be read.
FORMAT = 4

Settings = TypeVar("Settings")


def check_no_run(folder: Path) -> None:
    """Refuse the folder of a run, to which figures and data do not belong.

    Raises:
        RunFolderError: it is one.
    """
    if RunFolder(folder).settings_file.exists():
        raise RunFolderError(f"{folder} is a run folder: give --out another folder.")


class RunFolder:
    """`run.json`, `evidence/part-<key>.<digest>.parquet`, `summary.json`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings_file = path / "run.json"
        self.summary_file = path / "summary.json"
        self.parts = PartFolder(path / "evidence")
        self._lock = FolderLock(path)
        self._missing_parents = [parent for parent in path.parents if not parent.exists()]

    def check(self) -> None:
        """Refuse a folder that is not ours, before anything takes time.

        Raises:
            RunFolderError: it holds something else, or is a file.
        """
        if self.path.exists() and not self.path.is_dir():
            raise RunFolderError(f"{self.path} is a file: give --out another folder.")
        check_ours(self.settings_file)

    def lock(self) -> None:
        """Keep all other processes from writing into the folder, which is made if need be, until `unlock`.

        Raises:
            RunFolderError: another one is writing, or the folder cannot be written or holds something else.
        """
        check_ours(self.settings_file)
        make_folder(self.path)
        if self._lock.acquire():
            self._remove_leftovers()

    def unlock(self) -> None:
        """Let others write."""
        self._lock.release()

    @property
    def writer(self) -> LockHolder | None:
        """The living process that is writing into the folder; one that was killed does not count."""
        holder = self._lock.holder()
        return holder if holder is not None and holder.is_alive else None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The lock, for the block. A folder that is still empty at its end is removed."""
        self.lock()
        try:
            yield
        finally:
            if self._lock.times == 1 and self.path.is_dir() and all(map(is_lock_file, self.path.iterdir())):
                self._remove()
            self.unlock()

    def _remove_leftovers(self) -> None:
        """Remove temporary files of killed writers, but none of pages and figures, which need no lock."""
        for pattern in ("evidence/*", "*.json.*", "*.pt.*", "*.safetensors.*"):
            for leftover in filter(is_temporary, self.path.glob(pattern)):
                with suppress(OSError):  # if it cannot go, nothing can be written either, which the next writer says
                    leftover.unlink()

    def open(self, identity: dict[str, Any], description: dict[str, Any]) -> bool:
        """Make the folder, or go on in it if it belongs to the same run; True if it is new.

        What `run.json` said before stays, unless `description` says it anew. A summary of other parts than it plans is
        removed first: readers must not join the old numbers to the new plan if it is never finished.

        Raises:
            RunFolderError: it cannot be written, holds something else, or a run with another identity.
        """
        if self.settings_file.exists():
            self._check_format()
        new = begins(self.settings_file, identity)
        kept = {} if new else self.header()
        make_folder(self.path)
        if "parts" in description and kept.get("parts") != description["parts"]:
            remove_file(self.summary_file)
        json_file.write(self.settings_file, {**kept, "format": FORMAT, "identity": identity, **description})
        self.parts.make()
        return new

    def discard(self) -> None:
        """Take away the folder with all that is in it."""
        self._remove()

    def discard_if_empty(self) -> None:
        """Take away a folder in which nothing was finished, so that a failed start leaves nothing behind."""
        if self.parts.is_empty:
            self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        for parent in self._missing_parents:
            with suppress(OSError):
                parent.rmdir()

    def header(self) -> dict[str, Any]:
        """The content of `run.json` as plain data.

        Raises:
            RunFolderError: this is not a run folder, or the file is damaged.
        """
        return {**read_header(self.settings_file)}

    @property
    def kind(self) -> RunKind:
        """What the folder holds.

        Raises:
            RunFolderError: it is not a run folder, was written in another format, or its `run.json` is damaged.
        """
        self._check_format()
        kind = self.header()["identity"].get("kind")
        if kind not in list(RunKind):
            raise RunFolderError(
                f"{self.settings_file} is not readable as {SETTINGS} (identity.kind must be one of "
                f"{', '.join(RunKind)}, got {shortened(kind)}): restore the file as it was."
            )
        return RunKind(kind)

    def settings(self, kind: type[Settings], run: RunKind) -> Settings:
        """The content of the `run.json` of a run of one kind.

        Raises:
            RunFolderError: the folder holds something else, or the file is damaged.
        """
        if not self.path.is_dir():
            raise RunFolderError(f"There is no folder {self.path}: give one that {run.command} wrote.")
        if self.kind is not run:
            raise RunFolderError(
                f"{self.path} holds {self.kind.words}, not {run.words}: give a folder that {run.command} wrote."
            )
        return json_file.read(kind, self.settings_file, SETTINGS)

    def summary(self, kind: type[Settings], what: str) -> Settings:
        """The content of `summary.json`, which an error calls `what`.

        Raises:
            RunFolderError: the run is not finished, or the file is damaged.
        """
        try:
            return json_file.read(kind, self.summary_file, what)
        except FileNotFoundError as error:
            raise self.unfinished() from error

    def unfinished(self) -> RunFolderError:
        """The error for a run that lacks something which its command would compute."""
        return RunFolderError(f"{self.path} holds a run that is not finished: repeat its command.")

    def _check_format(self) -> None:
        header = read_header(self.settings_file, digest_required=False)
        if (found := header.get("format", 1)) != FORMAT:
            version = header.get("attnaudit", "an unknown version")
            raise RunFolderError(
                f"{self.path} was written by attnaudit {version} in format {found}, but this version reads format "
                f"{FORMAT}: repeat the command with --out another folder."
            )

    def write_summary(self, summary: Any) -> None:
        """Store `summary.json`."""
        json_file.write(self.summary_file, summary)

    def extend_settings(self, **more: Any) -> None:
        """Add to `run.json` what is known only at the end."""
        json_file.write(self.settings_file, {**self.header(), **more})
