"""What attention variants cost in whole networks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from attnaudit import defaults
from attnaudit.claims.jury import Judgement, judge
from attnaudit.claims.meanings import RecordKind
from attnaudit.claims.registry import claims_about
from attnaudit.cost.measuring import measure_costs
from attnaudit.cost.networks import SIZES
from attnaudit.numerics.devices import device_name
from attnaudit.numerics.threads import single_threaded
from attnaudit.records.cost import CostTable, read_costs
from attnaudit.records.engine import Progress
from attnaudit.report.costs import write_costs
from attnaudit.report.progress import shown_progress


@dataclass(frozen=True)
class Costs:
    """What networks cost, and what that says of claims about it."""

    table: CostTable
    judgement: Judgement


def cost(
    sizes: Sequence[str] = tuple(SIZES),
    *,
    batch: int = 8,
    repeats: int = 10,
    device: str = defaults.DEVICE,
    recorded: str | Path | None = None,
    out: str | Path | None = None,
    progress: Progress | bool = True,
) -> Costs:
    """Measure what every attention variant costs in vision transformers of DeiT's sizes, and judge claims about it.

    Operations are counted by hand and by torch, which must agree. Memory is the most that torch held beyond the network
    itself. Time is of plain PyTorch, and on a GPU of CUDA graphs, too. On a CPU it is processor time of one thread.

    Args:
        sizes: `tiny`, `small` and `base`.
        batch: images of a pass.
        repeats: passes that are timed.
        device: `auto`, `cpu` or `cuda`.
        recorded: a folder that an earlier call wrote: its numbers are judged and drawn again, and nothing is measured.
        out: a folder for the table and the figure.
        progress: a function that is told how far it is; True for a bar, False for none.
    """
    table = read_costs(Path(recorded)) if recorded is not None else _measured(sizes, batch, repeats, device, progress)
    if out is not None:
        write_costs(table, Path(out))
    return Costs(table, judge(claims_about(RecordKind.COST), [table]))


def _measured(sizes: Sequence[str], batch: int, repeats: int, device: str, progress: Progress | bool) -> CostTable:
    device = device_name(device)
    less = "--sizes tiny measures fewer networks"
    with shown_progress(progress, "measuring", less) as told, single_threaded() if device == "cpu" else nullcontext():
        return measure_costs(sizes, batch=batch, repeats=repeats, device=device, progress=told)
