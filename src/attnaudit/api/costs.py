"""What attention variants cost in whole networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnaudit import defaults
from attnaudit.claims.jury import Judgement, judge
from attnaudit.claims.meanings import RecordKind
from attnaudit.claims.registry import claims_about
from attnaudit.cost.measuring import check_settings, measure_costs
from attnaudit.cost.networks import SIZES
from attnaudit.numerics.devices import device_name
from attnaudit.records.cost import CostTable, read_costs
from attnaudit.records.engine import Progress
from attnaudit.records.files import check_writable
from attnaudit.records.run_folder import check_no_run
from attnaudit.report.costs import write_costs
from attnaudit.report.progress import shown_progress

#: How a command does less.
_LESS = "a smaller --batch, fewer --repeats or fewer --sizes take less time"


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
        progress: a function that is told how far it is; True for lines, False for none.

    Raises:
        RunFolderError: `out` cannot be written or is the folder of a run, or `recorded` has no table.
    """
    folder = None if out is None else Path(out)
    if folder is not None:
        check_no_run(folder)
    if recorded is not None:
        table = read_costs(Path(recorded))
    else:
        device = device_name(device)
        check_settings(sizes, batch, repeats)
        if folder is not None:
            check_writable(folder)  # a measurement that could not be written would be lost
        with shown_progress(progress, "measuring", _LESS, bar=False) as told:
            table = measure_costs(sizes, batch=batch, repeats=repeats, device=device, progress=told)
    if folder is not None:
        write_costs(table, folder)
    return Costs(table, judge(claims_about(RecordKind.COST), [table]))
