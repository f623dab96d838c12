"""An audit from start to finish: skip the units that are done, compute the rest, summarise."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnaudit._version import __version__
from attnaudit.audit.cluster import run_on_cluster
from attnaudit.audit.plan import AuditPlan
from attnaudit.audit.pool import run_here, run_in_processes
from attnaudit.audit.resources import Resources
from attnaudit.audit.summary import summarise
from attnaudit.audit.unit import AuditUnit
from attnaudit.errors import AttnAuditError, InputError
from attnaudit.records.evidence import Evidence
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.versions import installed_versions
from attnaudit.sources.model import LoadedModel, ModelSpec

#: Called with (units done, units in all) whenever a unit is finished.
Progress = Callable[[int, int], None]


def _silent(done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class Measured:
    """All units of a plan, computed: the rows, their summary, and the folder they are in."""

    folder: RunFolder
    rows: Evidence
    summary: dict[str, Any]
    keep_alive: Any = field(default=None, repr=False, compare=False)

    @property
    def path(self) -> Path:
        """The run folder."""
        return self.folder.path


def execute(
    plan: AuditPlan, *, out: Path | None = None, resources: Resources | None = None, progress: Progress = _silent
) -> Measured:
    """Carry out a plan. Repeating it with the same folder finishes what is missing and nothing else.

    Args:
        plan: models, inputs and settings.
        out: the run folder; a temporary one, alive as long as the result, if None.
        resources: where to work; by default in this process, as always with models that were given in memory.
        progress: told of every finished unit.
    """
    temporary = tempfile.TemporaryDirectory(prefix="attnaudit-") if out is None else None
    folder = RunFolder(Path(temporary.name) if temporary else Path(out or "."))
    new = folder.open(plan.identity, _description(plan.loaded, plan.keys))
    try:
        _compute_missing(plan, folder, resources or Resources(), progress)
        return _conclude(folder, plan, temporary)
    except AttnAuditError:
        if new:
            folder.discard_if_empty()
        raise


def _compute_missing(plan: AuditPlan, folder: RunFolder, resources: Resources, progress: Progress) -> None:
    total = len(plan.keys)
    done = sum(folder.has_part(key) for key in plan.keys)
    progress(done, total)
    for model, built, units in zip(plan.models, plan.loaded, plan.units, strict=True):
        missing = [unit for unit in units if not folder.has_part(unit.key)]
        for _ in _finished(missing, model, built, folder, resources) if missing else ():
            done += 1
            progress(done, total)


def _finished(
    units: Sequence[AuditUnit],
    model: ModelSpec | LoadedModel,
    built: LoadedModel,
    folder: RunFolder,
    resources: Resources,
) -> Iterator[AuditUnit]:
    """Units of one model as they finish, wherever the resources say that they run."""
    if resources.cluster is not None:
        return run_on_cluster(units, model, folder, resources.cluster, resources.memory)
    processes = resources.processes(len(units)) if units[0].settings.device == "cpu" else 1
    if processes > 1 and isinstance(model, ModelSpec):
        return run_in_processes(units, model, folder, processes, resources.memory_each(processes))
    return run_here(units, built, folder, resources.memory)


def _conclude(folder: RunFolder, plan: AuditPlan, keep_alive: Any) -> Measured:
    rows, notes = folder.evidence(plan.keys), folder.notes(plan.keys)
    if not len(rows):
        skipped = [pair for note in notes for pair in note.skipped]
        first = f"; the first: {skipped[0][0]} {skipped[0][1]}" if skipped else ""
        raise InputError(f"None of the {len(skipped)} inputs could be used{first}.")
    summary = summarise(rows, notes, plan.theories[0].name, plan.settings.seed)
    folder.write_summary(summary)
    certificates: dict[str, float] = {}
    solved: Counter[str] = Counter()
    for note in notes:
        solved.update(note.solvers)
        for layer, error in note.certificate.items():
            certificates[layer] = max(error, certificates.get(layer, 0.0))
    folder.extend_settings(certificates=certificates, eigen_solvers=dict(solved))
    return Measured(folder, rows, summary, keep_alive)


def _description(models: Sequence[LoadedModel], keys: Sequence[str]) -> dict[str, Any]:
    return {
        "attnaudit": __version__,
        "versions": installed_versions(),
        "weights": {model.label: model.weights_origin for model in models},
        "parts": list(keys),
    }
