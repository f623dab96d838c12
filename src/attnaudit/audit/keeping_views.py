"""Keep the views of heads beside an audit: not more than its page has room for, which is checked before anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from attnaudit.audit.input_views import bytes_of
from attnaudit.audit.plan import AuditPlan
from attnaudit.audit.view_plan import ViewPlan
from attnaudit.display import counted
from attnaudit.errors import UsageError
from attnaudit.records.engine import Progress, Resources, execute
from attnaudit.records.head_views import FOLDER

#: What views may take of a page, which has 3 MB in all.
MOST_BYTES = 1_800_000


def check_count(count: int) -> None:
    """Refuse a number of inputs that is none.

    Raises:
        UsageError: it is below 1.
    """
    if count < 1:
        raise UsageError(f"--keep-maps must be ≥ 1, got {count}: leave it out to keep no maps.")


def check_size(plan: AuditPlan, count: int, memory: int) -> None:
    """Refuse what would not fit, as one input of every model shows.

    Raises:
        UsageError: the views of `count` inputs would take too much of the page, or there is no input to keep.
    """
    check_count(count)
    wanted = min(count, sum(len(shard.identity) for shard in plan.shards))
    first = ViewPlan(plan, 1)
    worker = first.worker(memory)
    with worker.context():
        views = [view for unit in first.units for view in worker.views(unit)]
    each = sum(len(view.picture or b"") * 4 // 3 + sum(map(bytes_of, view.heads)) for view in views)
    if wanted * each > MOST_BYTES:
        heads = sum(len(view.heads) for view in views)
        fitting = MOST_BYTES // each
        advice = f"keep {fitting} at most" if fitting else "audit shorter inputs, or leave --keep-maps out"
        raise UsageError(
            f"Maps of {counted(heads, 'head')} on {counted(wanted, 'input')} would take about {wanted * each / 1e6:.1f}"
            f" MB of the page, which has room for {MOST_BYTES / 1e6:.1f} MB: {advice}."
        )


def keep_views(
    plan: AuditPlan, run: Path, count: int, resources: Resources, progress: Progress = lambda done, total, label: None
) -> None:
    """Compute what is missing of the views of the first `count` inputs, in a folder inside that of the run."""
    if plan.settings.device != "cpu" and resources.cluster is None:
        resources = replace(resources, workers=1)
    execute(ViewPlan(plan, count), run / FOLDER, resources, progress)
