"""What the verbs share that do not call the API yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attnaudit import defaults
from attnaudit.cli.console import progress_bar, say
from attnaudit.cli.options import Device

if TYPE_CHECKING:
    from attnaudit.audit import AuditPlan, Measured
    from attnaudit.records.engine import Resources

RUNS = Path(defaults.RUNS)


def device_name(device: Device) -> str:
    """`cpu` or `cuda`, what there is."""
    from attnaudit.numerics.devices import device_name

    return device_name(device.value)


def resources(workers: int | None, cluster: str | None, memory: str | None) -> Resources:
    """The workers, cluster and memory that the options name."""
    from attnaudit.records.engine import Resources, default_memory, parse_memory

    return Resources(workers, cluster, default_memory() if memory is None else parse_memory(memory))


def measure_with_progress(plan: AuditPlan, out: Path | None, resources: Resources, label: str) -> Measured:
    """Run an audit in its folder, with a progress bar."""
    from attnaudit.audit import measure

    with progress_bar(label) as progress:
        return measure(
            plan,
            out or RUNS / plan.name,
            resources=resources,
            progress=lambda done, total, _: progress(done, total),
        )


def report_losses(run: Measured) -> None:
    """Say what was left out, with reasons and numbers."""
    from attnaudit.audit.summary import losses

    for line in losses(run.summary):
        say(line)
