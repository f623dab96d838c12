"""An audit from start to finish: skip the units that are done, compute the rest, summarise."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa

from attnaudit._version import __version__
from attnaudit.errors import AttnAuditError, InputError
from attnaudit.evidence.folder import RunFolder
from attnaudit.evidence.plan import Plan
from attnaudit.evidence.pool import run_here, run_in_processes
from attnaudit.evidence.summary import summarise
from attnaudit.sources.model import LoadedModel, ModelSpec

#: Called with (units done, units in all) whenever a unit is finished.
Progress = Callable[[int, int], None]


def _silent(done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class Measured:
    """All units of a plan, computed: the rows, their summary, and the folder they are in."""

    folder: RunFolder
    evidence: pa.Table
    summary: dict[str, Any]
    keep_alive: Any = field(default=None, repr=False, compare=False)

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.folder.path


def execute(plan: Plan, *, out: Path | None = None, workers: int = 1, progress: Progress = _silent) -> Measured:
    """Carry out a plan. Repeating it with the same folder finishes what is missing and nothing else.

    Args:
        plan: models, inputs and settings.
        out: the run folder; a temporary one, alive as long as the result, if None.
        workers: processes; 1 works in this one, as do models that were given in memory.
        progress: told of every finished unit.
    """
    temporary = tempfile.TemporaryDirectory(prefix="attnaudit-") if out is None else None
    folder = RunFolder(Path(temporary.name) if temporary else Path(out or "."))
    new = folder.open(plan.identity, _description(plan.loaded, plan.keys))
    try:
        _compute_missing(plan, folder, workers, progress)
        return _conclude(folder, plan.keys, plan.settings.seed, temporary)
    except AttnAuditError:
        if new:
            folder.discard_if_empty()
        raise


def _compute_missing(plan: Plan, folder: RunFolder, workers: int, progress: Progress) -> None:
    total = len(plan.keys)
    done = sum(folder.has_part(key) for key in plan.keys)
    progress(done, total)
    for model, built, units in zip(plan.models, plan.loaded, plan.units, strict=True):
        missing = [unit for unit in units if not folder.has_part(unit.key)]
        if workers > 1 and isinstance(model, ModelSpec) and len(missing) > 1:
            finished = run_in_processes(missing, model, folder, min(workers, len(missing)))
        else:
            finished = run_here(missing, built, folder)
        for _ in finished:
            done += 1
            progress(done, total)


def _conclude(folder: RunFolder, keys: Sequence[str], seed: int, keep_alive: Any) -> Measured:
    evidence, notes = folder.read_parts(keys)
    if evidence.num_rows == 0:
        skipped = [pair for note in notes for pair in note.skipped]
        first = f"; the first: {skipped[0][0]} {skipped[0][1]}" if skipped else ""
        raise InputError(f"None of the {len(skipped)} inputs could be used{first}.")
    summary = summarise(evidence, notes, seed)
    folder.write_summary(summary)
    certificates: dict[str, float] = {}
    for note in notes:
        for layer, error in note.certificate.items():
            certificates[layer] = max(error, certificates.get(layer, 0.0))
    folder.extend_settings(certificates=certificates)
    return Measured(folder, evidence, summary, keep_alive)


def _description(models: Sequence[LoadedModel], keys: Sequence[str]) -> dict[str, Any]:
    packages = ("torch", "numpy", "scipy", "pyarrow", "timm", "transformers")
    return {
        "attnaudit": __version__,
        "versions": {"python": platform.python_version()} | {name: v for name in packages if (v := _version(name))},
        "weights": {model.label: model.weights_origin for model in models},
        "parts": list(keys),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
