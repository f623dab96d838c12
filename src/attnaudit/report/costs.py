"""What networks cost, for the terminal and as files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnaudit.cost.networks import SOFTMAX
from attnaudit.errors import MissingExtraError
from attnaudit.records import json_file
from attnaudit.records.cost import COST_FILE, CostTable
from attnaudit.records.files import make_folder
from attnaudit.records.verdict import Verdict, VerdictWord
from attnaudit.report.cost_figure import PASSES, Number, cost_figure, cost_rows, measured, ratios
from attnaudit.report.data_files import write_rows
from attnaudit.report.drawing import for_screen_and_print

_log = logging.getLogger(__name__)


def cost_report(table: CostTable, verdicts: Sequence[Verdict], *, wide: bool = False) -> RenderableType:
    """The answer; then a table for every size: costs as multiples of softmax attention's, themselves too if `wide`."""
    where = f"{table.device}, torch {table.torch}, {table.precision}, a batch of {table.batch}, {table.seconds:.0f} s"
    sizes = [part for size in table.sizes for part in (_table(table, size, wide=wide), _base(table, size))]
    how = "Each row was timed separately; verdicts compare passes that alternate with those of symmetric attention."
    return Group(Text(_answer(verdicts), "bold"), Text(f"{where}. {how}\n", "dim"), *sizes)


def _answer(verdicts: Sequence[Verdict]) -> str:
    counts = {word: sum(verdict.word is word for verdict in verdicts) for word in VerdictWord}
    return (
        f"Of {len(verdicts)} networks with published forms of RPC-Attention, {counts[VerdictWord.SUPPORTED]} cost what "
        f"is claimed, {counts[VerdictWord.REFUTED]} cost more, and {counts[VerdictWord.UNDECIDED]} are undecided."
    )


def _table(costs: CostTable, size: str, *, wide: bool) -> Table:
    title = Text(f"{size}: times softmax attention, at inference and in training")
    found = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    found.add_column("attention")
    columns: list[tuple[str, Number, dict[tuple[str, str], float]]] = []
    for (name, unit), number in measured(costs).items():
        columns += [(passed, number, ratios(costs, passed, number)) for passed in PASSES]
        if wide:
            for passed in PASSES:
                found.add_column(f"{passed}, {unit}", justify="right", no_wrap=True)
        else:
            found.add_column(name, justify="right")
    for own in costs.of_size(size):
        cells = []
        for passed, number, over in columns:
            value, ratio = number(getattr(own, passed)), over.get((own.attention, size))
            times = "–" if ratio is None else f"×{ratio:.2f}"
            cells.append(f"{value:,.2f} ({times})" if wide and value is not None else times)
        if not wide:
            cells = [" ".join(pair) for pair in zip(cells[::2], cells[1::2], strict=True)]
        found.add_row(own.attention, *cells)
    return found


def _base(costs: CostTable, size: str) -> Text:
    """What softmax attention itself costs, so that the ratios are of something."""
    base = next(own for own in costs.of_size(size) if own.attention == SOFTMAX)
    parts = []
    for (_, unit), number in measured(costs).items():
        first, second = (number(getattr(base, passed)) for passed in PASSES)
        if first is not None and second is not None:
            parts.append(f"{first:,.4g} and {second:,.4g} {unit}")
    return Text(f"Softmax attention, inference and training: {'; '.join(parts)}.\n", "dim")


def write_costs(table: CostTable, folder: Path) -> None:
    """The typed table, its numbers as CSV, and, if matplotlib is installed, the figure."""
    make_folder(folder)
    json_file.write(folder / COST_FILE, table)
    write_rows(cost_rows(table), folder / "cost.csv")
    written = [folder / COST_FILE, folder / "cost.csv"]
    figures = for_screen_and_print(folder, "cost")
    try:
        cost_figure(table, figures)
        written += figures
    except MissingExtraError as error:
        _log.warning("The figure is not drawn: %s", error)
    _log.info("Wrote %s.", ", ".join(map(str, written)))
