"""`attnaudit paper forensics`: which convention gives the eigenvalues reported by Teo & Nguyen (2024)?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attnaudit.cli.console import data_console, print_json, progress_bar, say
from attnaudit.cli.paper.heads import batch_of, captured

if TYPE_CHECKING:
    from attnaudit.sources.model import ModelSpec
    from attnaudit.sources.selection import InputSelection


def try_conventions(specs: Sequence[ModelSpec], choice: InputSelection, device: str, out: Path, json: bool) -> None:
    """Try every convention on every model; print the nearest, and write all of them to a CSV file per model."""
    from attnaudit.papers.forensics import investigate
    from attnaudit.records.files import file_name, make_folder
    from attnaudit.report.data_files import write_rows
    from attnaudit.report.terminal import forensics_table

    batch = batch_of(specs, choice)
    make_folder(out)
    for spec in specs:
        with progress_bar("96 conventions") as progress:
            progress(0, 1)
            findings = investigate(captured(spec, batch, device))
            progress(1, 1)
        table = out / f"forensics-{file_name(spec.label)}.csv"
        write_rows([finding.record() for finding in findings], table)
        if json:
            print_json([finding.record() for finding in findings])
        else:
            data_console().print(forensics_table(spec.label, findings))
        say(f"Wrote {table}.")
