"""`attnaudit doctor`: show what is installed, the device, and which layers of a model can be captured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from attnaudit.cli import options
from attnaudit.report.console import data_console, print_json


def doctor(
    model: Annotated[str | None, typer.Argument(help="A model to examine.", show_default=False)] = None,
    download: options.Download = False,
    json: options.Json = False,
) -> None:
    """Show what is installed or, for a model, which attention layers can be captured, and why others cannot.

    A model without local weights is examined with random ones, because capturing does not depend on the weights. A
    warning names layers whose heads have too few tokens, N < 2d, to be told from chance. The exit code is 1 if nothing
    can be captured.

    Examples:
        attnaudit doctor

        attnaudit doctor timm:cait_xxs24_224
    """
    from attnaudit.api.machine import doctor as diagnose

    diagnosis = diagnose(model, download=download)
    if json:
        print_json(diagnosis.sections)
    else:
        for title, rows in diagnosis.sections.items():
            data_console().print(_table(title, rows))
    if not diagnosis.is_usable:
        raise typer.Exit(1)


def _table(title: str, rows: Mapping[str, str]) -> Table:
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(Text(name), Text(value))
    return table
