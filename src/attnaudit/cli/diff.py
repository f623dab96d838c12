"""`attnaudit diff`: what changed between two runs, beyond noise."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from attnaudit.cli import options
from attnaudit.report.console import data_console, print_json


def diff(
    first: Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN", show_default=False)],
    second: Annotated[Path, typer.Argument(help="Another run folder.", metavar="RUN", show_default=False)],
    wide: options.Wide = False,
    json: options.Json = False,
) -> None:
    """Compare two runs head by head: the mean difference of every measure, with an interval over inputs.

    Heads are paired by input, layer, head and window, and models by name. If both runs have one model, their names may
    differ, as for a trained network and its untrained twin.

    Examples:
        attnaudit diff attnaudit-runs/before attnaudit-runs/after

        attnaudit diff runs/trained runs/random --json
    """
    from attnaudit.api.judging import diff as compared
    from attnaudit.report.difference import difference_report

    found = compared(first, second)
    if json:
        content = asdict(found)
        for change, entry in zip(found.changes, content["changes"], strict=True):
            entry["beyond_noise"] = change.beyond_noise
        print_json(content)
    else:
        data_console(wide=wide).print(difference_report(found, wide=wide))
