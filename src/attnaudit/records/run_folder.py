"""A run on disk: settings, Parquet parts named by what they hold, summary. Files are written whole or not at all."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from attnaudit.errors import RunFolderError
from attnaudit.records import json_file
from attnaudit.records.evidence import Evidence
from attnaudit.records.files import is_temporary, make_folder, remove_file, write_whole
from attnaudit.records.head_summaries import HeadSummaries
from attnaudit.records.identity import SETTINGS, begins, check_ours, read_header
from attnaudit.records.json_file import shortened
from attnaudit.records.lock import FolderLock, LockHolder, is_lock_file
from attnaudit.records.notes import Notes
from attnaudit.records.parts import check_part, key_of, part_name, read_notes, read_part
from attnaudit.records.schema import SCHEMA
from attnaudit.records.summary_rows import SUMMARY_SCHEMA, SummaryRows

#: Of run folders: raised when older ones can no longer be read.
FORMAT = 4
_log = logging.getLogger(__name__)

Settings = TypeVar("Settings")


class RunKind(StrEnum):
    """What a run folder holds."""

    AUDIT = "audit"
    TRAINING = "training"
    ROBUSTNESS = "robustness"
    MONITOR = "monitor"
    HEAD_VIEWS = "head views"

    @property
    def words(self) -> str:
        """For an error."""
        return _WORDS[self]

    @property
    def command(self) -> str:
        """What writes such a folder."""
        return _COMMANDS[self]


_WORDS = {
    RunKind.AUDIT: "an audit",
    RunKind.TRAINING: "a training",
    RunKind.ROBUSTNESS: "an evaluation of robustness",
    RunKind.MONITOR: "the measurements of a monitor",
    RunKind.HEAD_VIEWS: "maps of heads",
}
_COMMANDS = {
    RunKind.AUDIT: "attnaudit audit",
    RunKind.TRAINING: "attnaudit train",
    RunKind.ROBUSTNESS: "attnaudit robust",
    RunKind.MONITOR: "a monitor",
    RunKind.HEAD_VIEWS: "attnaudit audit --keep-maps",
}


class RunFolder:
    """`run.json`, `evidence/part-<key>.<digest>.parquet`, `summary.json`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings_file = path / "run.json"
        self.summary_file = path / "summary.json"
        self._parts = path / "evidence"
        self._lock = FolderLock(path)
        self._missing_parents = [parent for parent in path.parents if not parent.exists()]

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

        What `run.json` said before stays, unless `description` says it anew.

        Raises:
            RunFolderError: it cannot be written, holds something else, or a run with another identity.
        """
        if self.settings_file.exists():
            self._check_format()
        new = begins(self.settings_file, identity)
        kept = {} if new else self.header()
        make_folder(self.path)
        json_file.write(self.settings_file, {**kept, "format": FORMAT, "identity": identity, **description})
        make_folder(self._parts)
        return new

    def discard_if_empty(self) -> None:
        """Take away a folder in which nothing was finished, so that a failed start leaves nothing behind."""
        if not any(self._parts.glob("part-*")):
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
            raise RunFolderError(f"{self.path} holds a run that is not finished: repeat its command.") from error

    def _check_format(self) -> None:
        header = read_header(self.settings_file, digest_required=False)
        if (found := header.get("format", 1)) != FORMAT:
            version = header.get("attnaudit", "an unknown version")
            raise RunFolderError(
                f"{self.path} was written by attnaudit {version} in format {found}, but this version reads format "
                f"{FORMAT}: repeat the command with --out another folder."
            )

    def parts(self) -> dict[str, Path]:
        """The file of every unit that has one, by key: the newest, if writing it again was interrupted.

        Raises:
            RunFolderError: the folder of the parts cannot be read.
        """
        try:
            files = [file for file in self._parts.iterdir() if key_of(file)] if self._parts.exists() else []
            files.sort(key=lambda file: (file.lstat().st_mtime_ns, file.name))
        except OSError as error:
            raise RunFolderError(
                f"{self._parts} cannot be read ({error.strerror}): restore the folder as it was."
            ) from error
        return {str(key_of(file)): file for file in files}

    def missing_parts(self, keys: Sequence[str], schema: pa.Schema) -> list[str]:
        """The units of these that have no part, or a damaged one, which is said and removed.

        Raises:
            RunFolderError: a damaged part cannot be removed.
        """
        parts, missing = self.parts(), []
        for key in keys:
            try:
                if key in parts:
                    check_part(parts[key], schema)
                else:
                    missing.append(key)
            except RunFolderError:
                _log.warning("%s is damaged and is computed again.", parts[key])
                remove_file(parts[key])
                missing.append(key)
        return missing

    def write_part(self, key: str, content: bytes) -> None:
        """Store a finished unit, as `encode_part` made it, in place of an earlier part of the same unit.

        Raises:
            RunFolderError: it cannot be written, for want of space or rights.
        """
        own = self._parts / part_name(key, content)
        write_whole(own, content)
        for other in self._parts.glob("part-*"):
            if other.name != own.name and key_of(other) == key:
                remove_file(other)

    def remove_parts(self, keys: Iterable[str]) -> None:
        """Remove the parts of these units, where they have any.

        Raises:
            RunFolderError: one cannot be removed.
        """
        parts = self.parts()
        for key in keys:
            if key in parts:
                remove_file(parts[key])

    def evidence(self, keys: Sequence[str], schema: pa.Schema = SCHEMA) -> Evidence:
        """The rows of these units, in this order; checked now, and read when they are asked for.

        Raises:
            RunFolderError: a part is missing or damaged.
        """
        parts = self._parts_of(keys)
        for part in parts:
            check_part(part, schema)
        return Evidence.of_parts(parts)

    def evidence_with_notes(self, keys: Sequence[str], schema: pa.Schema = SCHEMA) -> tuple[Evidence, list[Notes]]:
        """Both at once: every part is checked once.

        Raises:
            RunFolderError: a part is missing or damaged.
        """
        parts = self._parts_of(keys)
        return Evidence.of_parts(parts), [read_notes(part, schema) for part in parts]

    def notes(self, keys: Sequence[str]) -> list[Notes]:
        """What these units had to say beside their rows.

        Raises:
            RunFolderError: a part is missing or damaged.
        """
        return [read_notes(part) for part in self._parts_of(keys)]

    def summaries_with_notes(self, keys: Sequence[str]) -> tuple[HeadSummaries, list[Notes]]:
        """The summaries that these parts hold in place of rows, and their notes.

        Raises:
            RunFolderError: a part is missing or damaged.
        """
        parts = self._parts_of(keys)
        notes = [read_notes(part, SUMMARY_SCHEMA) for part in parts]
        table = pa.concat_tables([SUMMARY_SCHEMA.empty_table(), *(read_part(part, SUMMARY_SCHEMA) for part in parts)])
        return HeadSummaries(SummaryRows.of_table(table)), notes

    def tables(self, sizes: Mapping[str, int], schema: pa.Schema) -> dict[str, pa.Table]:
        """The rows of units, which have these numbers of them, at once.

        Raises:
            RunFolderError: a part is missing or damaged, or has other columns or another number of rows.
        """
        parts = self._parts_of(list(sizes))
        return {key: read_part(part, schema, sizes[key]) for part, key in zip(parts, sizes, strict=True)}

    def _parts_of(self, keys: Sequence[str]) -> list[Path]:
        parts = self.parts()
        if missing := [key for key in keys if key not in parts]:
            raise RunFolderError(
                f"{self.path} lacks {len(missing)} of its {len(keys)} parts: repeat its command to compute them."
            )
        return [parts[key] for key in keys]

    def write_summary(self, summary: Any) -> None:
        """Store `summary.json`."""
        json_file.write(self.summary_file, summary)

    def extend_settings(self, **more: Any) -> None:
        """Add to `run.json` what is known only at the end."""
        json_file.write(self.settings_file, {**self.header(), **more})
