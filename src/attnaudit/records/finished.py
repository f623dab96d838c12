"""A run that is done, opened again from its folder: settings, summary and rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnaudit.errors import RunFolderError
from attnaudit.records.evidence import Evidence
from attnaudit.records.run_folder import RunFolder, RunKind


@dataclass(frozen=True)
class FinishedRun:
    """What a run folder holds: `settings` is its `run.json`, `summary` its `summary.json`."""

    path: Path
    settings: dict[str, Any]
    summary: dict[str, Any]
    rows: Evidence

    @property
    def name(self) -> str:
        """The folder's own name: where it lies is nobody's business but its owner's."""
        return self.path.resolve().name

    @property
    def models(self) -> list[str]:
        """The models that were audited, in order."""
        return list(self.summary["models"])

    @property
    def protocol(self) -> str:
        """`exact` or `paper`."""
        return str(self.settings["identity"]["settings"]["protocol"])

    @property
    def seed(self) -> int:
        """Of every random choice."""
        return int(self.settings["identity"]["settings"]["seed"])


def open_run(path: Path) -> FinishedRun:
    """Open a run folder.

    Raises:
        RunFolderError: it is no run folder, the run is not finished, or a part of it is gone.
    """
    folder = RunFolder(path)
    if folder.kind is not RunKind.AUDIT:
        raise RunFolderError(
            f"{path} holds {folder.kind.words}, not an audit: give a folder that attnaudit audit wrote."
        )
    settings = folder.header()
    try:
        summary = json.loads(folder.summary_file.read_text())
        summary["models"]
        keys = settings["parts"]
    except FileNotFoundError as error:
        raise RunFolderError(f"{path} holds a run that is not finished: repeat its command to go on.") from error
    except (json.JSONDecodeError, KeyError, TypeError, OSError) as error:
        raise RunFolderError(f"{folder.summary_file} is not readable as the summary of a run.") from error
    missing = [key for key in keys if not folder.has_part(key)]
    if missing:
        raise RunFolderError(f"{path} lacks {len(missing)} of its {len(keys)} parts: repeat its command to go on.")
    return FinishedRun(path, settings, summary, folder.evidence(keys))
