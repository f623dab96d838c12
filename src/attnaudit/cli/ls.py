"""`attnaudit ls`: what there is to choose from."""

from __future__ import annotations

import json as json_module
from enum import StrEnum
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from attnaudit.cli import options
from attnaudit.cli.console import data_console


class Kind(StrEnum):
    """What can be listed."""

    MODELS = "models"
    MEASURES = "measures"


def ls(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    json: options.Json = False,
) -> None:
    """List the models of the study or the measures.

    Examples:
        attnaudit ls models

        attnaudit ls measures --json
    """
    rows = _models() if kind is Kind.MODELS else _measures()
    if json:
        data_console().print_json(json_module.dumps(rows))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for name in rows[0]:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    data_console().print(table)


def _models() -> list[dict[str, str | None]]:
    from attnaudit.claims.published import VISION_MODELS
    from attnaudit.sources.data import data_weights

    return [
        {"model": f"timm:{name}", "tag": tag, "weights found": str(path) if (path := data_weights(name)) else None}
        for name, tag in VISION_MODELS.items()
    ]


def _measures() -> list[dict[str, str | None]]:
    from attnaudit.measures import FAMILIES

    return [
        {
            "measure": measure.name,
            "family": family,
            "closer": measure.closer,
            "ideal": None if measure.ideal is None else f"{measure.ideal:g}",
            "what": measure.text,
        }
        for family, members in FAMILIES.items()
        for measure in members.measures
    ]
