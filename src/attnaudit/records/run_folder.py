"""A run on disk: settings, Parquet parts named by what they hold, summary. Files are written whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from attnaudit.errors import RunFolderError
from attnaudit.records.evidence import Evidence
from attnaudit.records.files import make_folder, write_whole
from attnaudit.records.identity import begins, settings_in
from attnaudit.records.notes import Notes

_NOTES = b"attnaudit"


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
        new = begins(self.settings_file, identity)
        kept = {} if new else {name: value for name, value in self.settings().items() if name in keep}
        make_folder(self._parts)
        for leftover in (*self.path.glob(".*.tmp"), *self._parts.glob(".*.tmp")):
            with suppress(OSError):  # if it cannot go, nothing can be written either, which the next line says
                leftover.unlink()
        write_whole(self.settings_file, as_json({"identity": identity, **description, **kept}))
        return new

    def discard_if_empty(self) -> None:
        """Take away a folder in which nothing was finished, so that a failed start leaves nothing behind."""
        if not any(self._parts.glob("part-*")):
            shutil.rmtree(self.path, ignore_errors=True)
            for parent in self._missing_parents:
                with suppress(OSError):
                    parent.rmdir()

    def settings(self) -> dict[str, Any]:
        """The content of `run.json`."""
        return settings_in(self.settings_file)

    def part(self, key: str) -> Path:
        """The file of a unit."""
        return self._parts / f"part-{key}.parquet"

    def has_part(self, key: str) -> bool:
        """Whether that unit is finished."""
        return self.part(key).exists()

    def write_part(self, key: str, content: bytes) -> None:
        """Store a finished unit, as `encoded` made it.

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
        return [self._note(self.part(key)) for key in keys]

    def table(self, key: str, schema: pa.Schema, rows: int) -> pa.Table:
        """The rows of one unit, at once.

        Raises:
            RunFolderError: the part is damaged, or has other columns or another number of rows.
        """
        part = self.part(key)
        try:
            found = pq.read_table(part)
        except (OSError, pa.ArrowInvalid) as error:
            raise _damaged(part) from error
        if found.schema.names != schema.names or len(found) != rows:
            raise _damaged(part)
        return found

    def _note(self, part: Path) -> Notes:
        try:
            return Notes.from_json(pq.read_metadata(part).metadata[_NOTES])
        except (OSError, pa.ArrowInvalid) as error:
            raise _damaged(part) from error

    def write_summary(self, summary: dict[str, Any]) -> None:
        """Store `summary.json`."""
        write_whole(self.summary_file, as_json(summary))

    def extend_settings(self, **more: Any) -> None:
        """Add to `run.json` what is known only at the end."""
        write_whole(self.settings_file, as_json({**self.settings(), **more}))


def encoded(table: pa.Table, notes: Notes) -> bytes:
    """The Parquet file of a unit; equal units give equal bytes, wherever they were computed."""
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({_NOTES: notes.as_json()}), sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _damaged(part: Path) -> RunFolderError:
    return RunFolderError(f"{part} is damaged: delete it and repeat the command to compute it again.")


def as_json(content: dict[str, Any]) -> bytes:
    """The text of a settings or summary file; a number that is not finite has no place in it."""
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
