"""The time of an audit by stage, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from attnaudit.audit.benchmark import Benchmark


def stages_report(found: Benchmark) -> RenderableType:
    """The engine by stage beside its floor and by pass, in microseconds per head; then what is around it."""
    return Group(_stages(found), _passes(found), _around(found))


def _stages(found: Benchmark) -> Table:
    title = f"{found.model}: {found.inputs} inputs, {found.heads:,} heads, {found.device}"
    table = _table(title, "stage", "µs per head", "share", "floor", "times the floor")
    for name, spent in sorted(found.stages.items(), key=lambda entry: -entry[1]):
        least = found.floor.get(name, 0.0)
        above = f"{spent / least:.1f}" if least else ""
        table.add_row(name, _per_head(spent, found), f"{spent / found.traced:.0%}", _per_head(least, found), above)
    table.add_section()
    wholes = {"engine": found.traced} | ({} if found.engine is None else {"engine without the clock": found.engine})
    for name, whole in wholes.items():
        above = f"{whole / found.least:.2f}"
        table.add_row(name, _per_head(whole, found), "", _per_head(found.least, found), above)
    table.add_row("one eigenproblem of 197 x 197", f"{found.reference * 1e6:,.1f}", "", "", "")
    return table


def _passes(found: Benchmark) -> Table:
    table = _table("", "pass over the heads", "µs per head", "share")
    for name, spent in sorted(found.passes.items(), key=lambda entry: -entry[1]):
        table.add_row(name, _per_head(spent, found), f"{spent / found.traced:.0%}")
    return table


def _around(found: Benchmark) -> Table:
    table = _table("", "around the engine", "seconds")
    around: Mapping[str, float] = found.around
    for name, spent in sorted(around.items(), key=lambda entry: -entry[1]):
        table.add_row(name, f"{spent:.2f}")
    table.add_section()
    table.add_row("engine", f"{found.total:.2f}")
    table.add_row("from shell to page", f"{sum(around.values()) + found.total:.2f}")
    return table


def _table(title: str, first: str, *columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left")
    table.add_column(first)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _per_head(seconds: float, found: Benchmark) -> str:
    return f"{seconds / found.heads * 1e6:,.1f}" if seconds else ""
