"""`attnaudit report`: write an HTML page of one run, or of several side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnaudit.report.console import say


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.", metavar="RUN...", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Output file. Default: report.html in the run folder, or here for several runs.", show_default=False
        ),
    ] = None,
) -> None:
    """Write one self-contained HTML page: verdicts, heads and their references, heat maps, tables.

    The page opens from disk and needs no network; several runs are compared. Its path is printed on stdout.

    Examples:
        attnaudit report attnaudit-runs/minilm-exact-1a2b3c4d

        attnaudit report attnaudit-runs/* --out comparison.html
    """
    from attnaudit.api.judging import report as written

    path = written(runs, out)
    typer.echo(str(path))
    say(f"{path.stat().st_size / 1e6:.2f} MB, {len(runs)} run{'s' if len(runs) > 1 else ''}: open it in a browser.")
