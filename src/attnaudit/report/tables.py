"""Tables for the terminal that fit into 80 columns: what is less important is shown on request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True)
class TableColumn:
    """One column; `extra` ones are shown only with `--wide`, `whole` ones never break a cell into lines."""

    name: str
    number: bool = False
    whole: bool = False
    extra: bool = False


@dataclass(frozen=True)
class TableRow:
    """A cell for every column, whether it is shown or not."""

    cells: Sequence[RenderableType]
    style: str = ""


def terminal_table(
    title: str, columns: Sequence[TableColumn], rows: Iterable[TableRow], *, wide: bool = False
) -> Table:
    """A table of these columns, without the extra ones unless `wide`."""
    shown = [place for place, column in enumerate(columns) if wide or not column.extra]
    words = Text(title) if title else None
    table = Table(title=words, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 2 if wide else 1, 0, 0))
    for column in (columns[place] for place in shown):
        justify: Literal["left", "right"] = "right" if column.number else "left"
        table.add_column(column.name, justify=justify, no_wrap=column.whole, overflow="fold")
    for row in rows:
        table.add_row(*(row.cells[place] for place in shown if place < len(row.cells)), style=row.style)
    return table
