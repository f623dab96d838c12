"""`attnaudit ls`: list models, claims, measures and other choices."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from attnaudit.cli import options
from attnaudit.errors import UsageError
from attnaudit.report.console import data_console, print_json


class Listing(StrEnum):
    """What can be listed."""

    MODELS = "models"
    CLAIMS = "claims"
    MEASURES = "measures"
    REFERENCES = "references"
    THEORIES = "theories"
    ATTENTION = "attention"
    RECIPES = "recipes"
    ATTACKS = "attacks"
    CORRUPTIONS = "corruptions"
    NOISES = "noises"


def ls(
    kind: Annotated[Listing, typer.Argument(help="What to list.", show_default=False)],
    name: Annotated[str | None, typer.Argument(help="A claim, to show it in full.", show_default=False)] = None,
    wide: options.Wide = False,
    json: options.Json = False,
) -> None:
    """List models, claims, measures and other choices; with the name of a claim, show its page.

    Examples:
        attnaudit ls claims

        attnaudit ls claims kpca-values

        attnaudit ls measures --json
    """
    from attnaudit.report.claim_page import claim_lines, claim_named, claim_page
    from attnaudit.report.listings import listing, listing_table

    if name is None:
        rows = listing(kind.value)
        print_json(rows) if json else data_console(wide=wide).print(listing_table(rows, wide=wide))
    elif kind is Listing.CLAIMS:
        claim = claim_named(name)
        if json:
            print_json({"claim": name, **dict(claim_lines(claim))})
        else:
            data_console(wide=wide).print(claim_page(claim))
    else:
        raise UsageError(f"Only claims have a page: remove {name!r} after attnaudit ls {kind.value}.")
