"""Write a figure as SVG and PDF, and its numbers as CSV and, on request, JSON."""

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
    """Write the files of a figure to a folder and print their names."""
    from attnaudit.records.files import make_folder
    from attnaudit.report.data_files import write_csv
    from attnaudit.report.drawing import for_screen_and_print

    make_folder(out)
    images, table = for_screen_and_print(out, name), out / f"{name}.csv"
    draw(records, images)
    write_csv(records, table)
    if json:
        print_json([asdict(record) for record in records])
    say(f"Wrote {', '.join(map(str, images))} and {table}.")
