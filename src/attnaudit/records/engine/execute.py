"""A plan from start to finish: open its folder, skip the parts that are there, compute and store the rest."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from attnaudit._version import __version__
from attnaudit.errors import AttnAuditError, UsageError
from attnaudit.records.engine.cluster import compute_on_cluster
from attnaudit.records.engine.plan import AnyUnit, Keeper, Parts, Plan, Progress, Task, Worker
from attnaudit.records.engine.processes import can_travel, compute_in_processes
from attnaudit.records.engine.resources import Resources
from attnaudit.records.parts import encode_part
from attnaudit.records.run_folder import RunFolder
from attnaudit.records.versions import installed_versions


def _silent(done: int, total: int, label: str) -> None:
    pass


def execute(
    plan: Plan[AnyUnit],
    out: Path | RunFolder,
    resources: Resources | None = None,
    progress: Progress = _silent,
    keeper: Keeper | None = None,
) -> RunFolder:
    """Compute what is missing of a plan in its run folder, and nothing else.

    The parts have the same bytes wherever they were computed and however often the run was interrupted.

    Args:
        plan: what to compute.
        out: the run folder, which may be locked already; it is resumed if it belongs to the same plan.
        resources: where to compute; in this process by default.
        progress: told of every finished unit.
        keeper: what is kept in place of the parts; these by default.

    Raises:
        RunFolderError: the folder belongs to another run, cannot be written, or is being written by another process.
        WorkerError: workers died or cannot be reached; what was finished is stored.
    """
    folder = out if isinstance(out, RunFolder) else RunFolder(out)
    with folder.locked():
        _fill(plan, folder, resources or Resources(), progress, keeper)
    return folder


def _fill(
    plan: Plan[AnyUnit], folder: RunFolder, resources: Resources, progress: Progress, keeper: Keeper | None
) -> None:
    units = {unit.key: unit for unit in plan.units}
    about = {"attnaudit": __version__, "versions": installed_versions()}
    new = folder.open(plan.identity, {**about, "parts": list(units), **plan.description})
    try:
        settled = () if keeper is None else keeper.settled(folder)
        needed = [key for key in units if key not in settled]
        missing = [units[key] for key in folder.parts.missing(needed, plan.schema)]
        done = len(units) - len(missing)
        labels = iter([*(unit.label for unit in missing), "done"])
        progress(done, len(units), next(labels))
        if missing:
            with closing(_compute(plan, missing, resources)) as parts:
                for key, content in parts:
                    folder.parts.write(key, content)
                    if keeper is not None:
                        keeper.stored(folder, key)
                    done += 1
                    progress(done, len(units), next(labels))
    except AttnAuditError:
        if new:
            folder.discard_if_empty()
        raise


def _compute(plan: Plan[AnyUnit], units: Sequence[AnyUnit], resources: Resources) -> Parts:
    """Wherever the resources say."""
    if resources.cluster is not None:
        tasks = _tasks(plan, units)
        if tasks is None:
            raise UsageError(
                "A model given in memory cannot be sent to a cluster: give its name, or leave the cluster out."
            )
        return compute_on_cluster(tasks, resources.cluster, resources.memory)
    processes = resources.processes(len(units))
    if processes > 1 and (tasks := _tasks(plan, units)) is not None and can_travel(tasks[0]):
        return compute_in_processes(tasks, processes, resources.memory_each(processes))
    return _compute_here(units, plan.worker(resources.memory))


def _tasks(plan: Plan[AnyUnit], units: Sequence[AnyUnit]) -> list[Task[AnyUnit]] | None:
    """The units with what another process needs to compute them; None if only this one can."""
    tasks = []
    for unit in units:
        recipe = plan.recipe(unit)
        if recipe is None:
            return None
        tasks.append((unit, recipe))
    return tasks


def _compute_here(units: Sequence[AnyUnit], worker: Worker[AnyUnit]) -> Parts:
    with worker.context():
        for unit, following in zip(units, [*units[1:], None], strict=True):
            yield unit.key, encode_part(unit.key, *worker.compute(unit, following))
