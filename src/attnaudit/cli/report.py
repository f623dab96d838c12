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
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Of a monitor or a training: write the page anew with every step, until the end."),
    ] = False,
) -> None:
    """Write one self-contained HTML page of audits, or of what a monitor or a training measured over its steps.

    An audit has verdicts, heads and their references, heat maps and tables, and several audits are compared. A monitor
    or a training has scores, J and norms over steps, also while it is still running; the browser then reads the page
    again by itself. Other folders among several are left out. The path of the page is printed on stdout.

    Examples:
        attnaudit report attnaudit-runs/minilm-exact-1a2b3c4d

        attnaudit report attnaudit-runs/* --out comparison.html

        attnaudit report runs/monitored --watch
    """
    from attnaudit.api.reports import report as written

    path = written(runs, out, watch=watch)
    typer.echo(str(path))
    say(f"{path.stat().st_size / 1e6:.2f} MB: open it in a browser.")
