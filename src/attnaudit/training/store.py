"""Where the rows of a monitor go: parts of a run folder, or memory. A step that is measured again replaces itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from attnaudit._version import __version__
from attnaudit.numerics.digest import digest
from attnaudit.records.evidence import Evidence
from attnaudit.records.notes import Notes
from attnaudit.records.run_folder import RunFolder, encoded
from attnaudit.records.schema import SCHEMA, VERSION
from attnaudit.records.versions import installed_versions


class MemoryStore:
    """Rows by step, as long as the monitor lives."""

    def __init__(self) -> None:
        self._tables: dict[int, pa.Table] = {}

    def add(self, step: int, table: pa.Table, notes: Notes) -> None:
        """Keep the rows of a step."""
        self._tables[step] = table

    @property
    def evidence(self) -> Evidence:
        """All rows, in order of steps."""
        tables = [table for _, table in sorted(self._tables.items())]
        return Evidence.of_table(pa.concat_tables(tables or [SCHEMA.empty_table()]).unify_dictionaries())


class FolderStore:
    """A part per step, named by a hash of the folder's run and of the step; `run.json` lists `steps`.

    The run and not the batches: measured again, though on other inputs, a step must not leave rows of the first time.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._run = folder.header()["identity"]

    @staticmethod
    def at(path: Path, identity: dict[str, Any]) -> FolderStore:
        """A folder of the monitor's own: made, or gone on in if the same was measured there.

        Raises:
            RunFolderError: it cannot be written, or holds something else.
        """
        folder = RunFolder(path)
        description = {"attnaudit": __version__, "versions": installed_versions()}
        folder.open(identity, description, keep=("parts", "steps"))
        return FolderStore(folder)

    def add(self, step: int, table: pa.Table, notes: Notes) -> None:
        """Write the part of a step."""
        key = self._key(step)
        self._folder.write_part(key, encoded(table, notes))
        settings = self._folder.header()
        parts, steps = settings.get("parts", []), settings.get("steps", {})
        if steps.get(str(step)) != key:
            self._folder.extend_settings(parts=[*parts, key], steps={**steps, str(step): key})

    def _key(self, step: int) -> str:
        return digest(VERSION, step, self._run)

    @property
    def evidence(self) -> Evidence:
        """All rows, in order of steps."""
        steps = self._folder.header().get("steps", {})
        return self._folder.evidence([steps[step] for step in sorted(steps, key=int)])
