"""The folder of a training: made, or gone on in if it holds the same one, and not left behind by a failed start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnaudit._version import __version__
from attnaudit.errors import AttnAuditError
from attnaudit.records import json_file
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.training import TrainingIdentity
from attnaudit.records.versions import installed_versions
from attnaudit.training import checkpoint, ranks
from attnaudit.training.batches import Layout
from attnaudit.training.task import Task


@contextmanager
def opened(out: Path, task: Task, layout: Layout) -> Iterator[RunFolder]:
    """The folder, with its `run.json`; all ranks must call this, and the first of them writes.

    Raises:
        RunFolderError: it cannot be written, or holds something else.
    """
    folder = RunFolder(out)
    # Each rank has its share of what the monitor looks at: with another number, one curve would be of two batches.
    ranks_count = layout.ranks.count if task.recipe.monitored_inputs > 0 else None
    identity = json_file.plain(TrainingIdentity(task.recipe, layout.seed, tuple(task.fingerprints), ranks_count))
    about = {"attnaudit": __version__, "versions": installed_versions(), "steps_per_epoch": layout.steps}
    new = ranks.together(lambda: layout.ranks.leads and folder.open(identity, about, keep=("parts", "steps")))
    try:
        yield folder
    except AttnAuditError:
        if new and not (out / checkpoint.FILE).exists():
            folder.discard_if_empty()
        raise
