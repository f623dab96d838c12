"""The parts of a run, one per unit: which there are, what they hold, and which are missing or damaged."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from attnaudit.errors import RunFolderError
from attnaudit.records.evidence import Evidence
from attnaudit.records.files import make_folder, remove_file, write_whole
from attnaudit.records.head_summaries import HeadSummaries
from attnaudit.records.notes import Notes
from attnaudit.records.parts import check_part, key_of, part_name, read_notes, read_part
from attnaudit.records.schema import SCHEMA
from attnaudit.records.summary_rows import SUMMARY_SCHEMA, SummaryRows

_log = logging.getLogger(__name__)


class PartFolder:
    """`part-<key>.<digest>.parquet` of every finished unit, in a folder below that of the run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Make the folder, if need be.

        Raises:
            RunFolderError: it cannot be made.
        """
        make_folder(self.path)

    @property
    def is_empty(self) -> bool:
        """Whether no unit was finished."""
        return not any(self.path.glob("part-*"))

    def files(self) -> dict[str, Path]:
        """The file of every unit that has one, by key: the newest, if writing it again was interrupted.

        Raises:
            RunFolderError: the folder of the parts cannot be read.
        """
        try:
            files = [file for file in self.path.iterdir() if key_of(file)] if self.path.exists() else []
            files.sort(key=lambda file: (file.lstat().st_mtime_ns, file.name))
        except OSError as error:
            raise RunFolderError(
                f"{self.path} cannot be read ({error.strerror}): restore the folder as it was."
            ) from error
        return {str(key_of(file)): file for file in files}

    def missing(self, keys: Sequence[str], schema: pa.Schema) -> list[str]:
        """The units of these that have no part, or a damaged one, which is said and removed.

        Raises:
            RunFolderError: a damaged part cannot be removed.
        """
        parts, missing = self.files(), []
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

    def write(self, key: str, content: bytes) -> None:
        """Store a finished unit, as `encode_part` made it, in place of an earlier part of the same unit.

        Raises:
            RunFolderError: it cannot be written, for want of space or rights.
        """
        own = self.path / part_name(key, content)
        write_whole(own, content)
        for other in self.path.glob("part-*"):
            if other.name != own.name and key_of(other) == key:
                remove_file(other)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove the parts of these units, where they have any.

        Raises:
            RunFolderError: one cannot be removed.
        """
        parts = self.files()
        for key in keys:
            if key in parts:
                remove_file(parts[key])

    def evidence(self, keys: Sequence[str], schema: pa.Schema = SCHEMA) -> Evidence:
        """The rows of these units, in this order; checked now, and read when they are asked for.

        Raises:
            RunFolderError: a part is missing or damaged.
        """
        parts = self._files_of(keys)
        for part in parts:
            check_part(part, schema)
        return Evidence.of_parts(parts)

    def evidence_with_notes(self, keys: Sequence[str], schema: pa.Schema = SCHEMA) -> tuple[Evidence, list[Notes]]:
        """Both at once: every part is checked once.

        Raises:
            RunFolderError: a part is missing or damaged.
        """
        parts = self._files_of(keys)
        return Evidence.of_parts(parts), [read_notes(part, schema) for part in parts]

    def notes(self, keys: Sequence[str]) -> list[Notes]:
        """What these units had to say beside their rows.

        Raises:
            RunFolderError: a part is missing or damaged.
        """
        return [read_notes(part) for part in self._files_of(keys)]

    def summaries_with_notes(self, keys: Sequence[str]) -> tuple[HeadSummaries, list[Notes]]:
        """The summaries that these parts hold in place of rows, and their notes.

        Raises:
            RunFolderError: a part is missing or damaged.
        """
        parts = self._files_of(keys)
        notes = [read_notes(part, SUMMARY_SCHEMA) for part in parts]
        table = pa.concat_tables([SUMMARY_SCHEMA.empty_table(), *(read_part(part, SUMMARY_SCHEMA) for part in parts)])
        return HeadSummaries(SummaryRows.of_table(table)), notes

    def tables(self, sizes: Mapping[str, int], schema: pa.Schema) -> dict[str, pa.Table]:
        """The rows of units, which have these numbers of them, at once.

        Raises:
            RunFolderError: a part is missing or damaged, or has other columns or another number of rows.
        """
        parts = self._files_of(list(sizes))
        return {key: read_part(part, schema, sizes[key]) for part, key in zip(parts, sizes, strict=True)}

    def _files_of(self, keys: Sequence[str]) -> list[Path]:
        parts = self.files()
        if missing := [key for key in keys if key not in parts]:
            raise RunFolderError(
                f"{self.path.parent} lacks {len(missing)} of its {len(keys)} parts: repeat its command to compute them."
            )
        return [parts[key] for key in keys]
