"""How a figure is handed over: as SVG and PDF, with its numbers as CSV, and as JSON on request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attnaudit.cli.console import print_json, say


def deliver(
    name: str,
    records: Sequence[Any],
    draw: Callable[[Sequence[Any], Sequence[Path]], None],
    out: Path,
    json: bool,
) -> None:
    """Write the files of a figure into a folder and say which."""
    from attnaudit.records.files import make_folder
    from attnaudit.report.drawing import for_screen_and_print
    from attnaudit.report.figures import write_csv

    make_folder(out)
    images, table = for_screen_and_print(out, name), out / f"{name}.csv"
    draw(records, images)
    write_csv(records, table)
    if json:
        print_json([asdict(record) for record in records])
    say(f"Wrote {', '.join(map(str, images))} and {table}.")
