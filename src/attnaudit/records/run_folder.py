"""A run on disk: settings, Parquet parts named by what they hold, summary. Files are written whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from attnaudit.errors import RunFolderError
from attnaudit.records import json_file
from attnaudit.records.evidence import Evidence
from attnaudit.records.files import make_folder, write_whole
from attnaudit.records.identity import SETTINGS, begins, read_header
from attnaudit.records.json_file import shortened
from attnaudit.records.notes import Notes
from attnaudit.records.parts import read_notes, read_part

#: Of run folders: raised when older ones can no longer be read.
FORMAT = 2

Settings = TypeVar("Settings")


class RunKind(StrEnum):
    """What a run folder holds."""

    AUDIT = "audit"
    TRAINING = "training"
    ROBUSTNESS = "robustness"
    MONITOR = "monitor"

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
}
_COMMANDS = {
    RunKind.AUDIT: "attnaudit audit",
    RunKind.TRAINING: "attnaudit train",
    RunKind.ROBUSTNESS: "attnaudit robust",
    RunKind.MONITOR: "a monitor",
}


class RunFolder:
    """`run.json`, `evidence/part-<hash>.parquet`, `summary.json`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings_file = path / "run.json"
        self.summary_file = path / "summary.json"
        self._parts = path / "evidence"
        self._missing_parents = [parent for parent in path.parents if not parent.exists()]

    def open(self, identity: dict[str, Any], description: dict[str, Any], keep: Sequence[str] = ()) -> bool:
        """Make the folder, or go on in it if it belongs to the same run; True if it is new.

        Of what `run.json` said before, the identity and what is named in `keep` stay.

        Raises:
            RunFolderError: it cannot be written, holds something else, or a run with another identity.
        """
        if self.settings_file.exists():
            self._check_format()
        new = begins(self.settings_file, identity)
        kept = {} if new else {name: value for name, value in self.header().items() if name in keep}
        make_folder(self._parts)
        for leftover in (*self.path.glob(".*.tmp"), *self._parts.glob(".*.tmp")):
            with suppress(OSError):  # if it cannot go, nothing can be written either, which the next line says
                leftover.unlink()
        json_file.write(self.settings_file, {"format": FORMAT, "identity": identity, **description, **kept})
        return new

    def discard_if_empty(self) -> None:
        """Take away a folder in which nothing was finished, so that a failed start leaves nothing behind."""
        if not any(self._parts.glob("part-*")):
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
        header = self.header()
        if (found := header.get("format", 1)) != FORMAT:
            version = header.get("attnaudit", "an unknown version")
            raise RunFolderError(
                f"{self.path} was written by attnaudit {version} in format {found}, but this version reads format "
                f"{FORMAT}: repeat the command with --out another folder."
            )

    def part(self, key: str) -> Path:
        """The file of a unit."""
        return self._parts / f"part-{key}.parquet"

    def has_part(self, key: str) -> bool:
        """Whether that unit is finished."""
        return self.part(key).exists()

    def write_part(self, key: str, content: bytes) -> None:
        """Store a finished unit, as `encode_part` made it.

        Raises:
            RunFolderError: it cannot be written, for want of space or rights.
        """
        write_whole(self.part(key), content)

    def evidence(self, keys: Sequence[str]) -> Evidence:
        """The rows of these units, in this order; read when they are asked for."""
        return Evidence.of_parts([self.part(key) for key in keys])

    def evidence_so_far(self) -> Evidence:
        """The rows of every part there is, of a run that is perhaps still under way."""
        return Evidence.of_parts(sorted(self._parts.glob("part-*.parquet")))

    def notes(self, keys: Sequence[str]) -> list[Notes]:
        """What these units had to say beside their rows."""
        return [read_notes(self.part(key)) for key in keys]

    def table(self, key: str, schema: pa.Schema, rows: int) -> pa.Table:
        """The rows of one unit, at once.

        Raises:
            RunFolderError: the part is damaged, or has other columns or another number of rows.
        """
        return read_part(self.part(key), schema, rows)

    def write_summary(self, summary: Any) -> None:
        """Store `summary.json`."""
        json_file.write(self.summary_file, summary)

    def extend_settings(self, **more: Any) -> None:
        """Add to `run.json` what is known only at the end."""
        json_file.write(self.settings_file, {**self.header(), **more})
