"""The laboratory's tables: theory against measurement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from attnaudit.gaussian.experiments.findings import TheoryCheck


def check_table(title: str, checks: Sequence[TheoryCheck]) -> Table:
    """Columns theory | measured | z, with a note if z is missing."""
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("quantity")
    for name in ("theory", "measured", "± se", "z"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("note", style="dim")
    for check in checks:
        table.add_row(
            Text(check.quantity),
            _number(check.theory),
            _number(check.measured),
            "–" if not check.standard_error else f"{check.standard_error:.1g}",
            "–" if check.z is None else f"{check.z:+.1f}",
            Text(check.note),
        )
    return table


def check_rows(checks: Sequence[TheoryCheck]) -> list[dict[str, Any]]:
    """The table as plain rows, for CSV and JSON."""
    return [
        {
            "quantity": check.quantity,
            "theory": check.theory,
            "measured": check.measured,
            "standard_error": check.standard_error,
            "z": check.z,
            "note": check.note,
        }
        for check in checks
    ]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"
