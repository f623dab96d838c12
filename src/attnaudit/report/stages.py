"""The time of the stages of an audit, for the terminal."""

from __future__ import annotations

from rich import box
from rich.table import Table

from attnaudit.audit.stages import FLOOR, Stages


def stages_table(stages: Stages) -> Table:
    """Microseconds per head and shares of the stages, then the total and the floor."""
    table = Table(box=box.SIMPLE_HEAD, title=f"{stages.heads:,} heads", title_justify="left")
    table.add_column("stage")
    for column in ("µs per head", "share", "in the floor"):
        table.add_column(column, justify="right")
    for name, spent in (*stages.seconds.items(), ("everything else", stages.other)):
        mark = "yes" if name in FLOOR else ""
        table.add_row(name, f"{spent / stages.heads * 1e6:,.1f}", f"{spent / stages.total:.0%}", mark)
    table.add_section()
    table.add_row("total", f"{stages.total / stages.heads * 1e6:,.1f}", "100%", "")
    table.add_row("floor", f"{stages.floor / stages.heads * 1e6:,.1f}", f"{stages.floor / stages.total:.0%}", "")
    return table
