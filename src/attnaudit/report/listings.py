"""Models, claims, measures and the other things there are to choose from, a row each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.table import Table

from attnaudit.attention import VARIANTS
from attnaudit.claims.registry import CLAIMS
from attnaudit.measures import MEASURES, REFERENCES
from attnaudit.papers.published_tables import VISION_MODELS
from attnaudit.protocol import Protocol
from attnaudit.report.tables import TableColumn, TableRow, terminal_table
from attnaudit.robustness.attacks import attacks
from attnaudit.robustness.corruption_error import ALEXNET_ERRORS
from attnaudit.robustness.corruptions import CORRUPTIONS
from attnaudit.robustness.noises import NOISES
from attnaudit.sources.catalogue import catalogue
from attnaudit.sources.data import data_weights
from attnaudit.theories.base import guard_of
from attnaudit.theories.registry import PRIMAL_SVD, THEORIES
from attnaudit.training.recipe_file import read_recipe, recipe_names

Row = dict[str, str | None]
#: Columns that say what something is; the others are shown on request where there are many.
_MAIN = ("statement", "what", "closer", "role", "formula")
#: The same where they are others.
_MAIN_OF = {"model": ("field", "MB", "licence", "here"), "attack": ("protocol", "what")}
_FEW = 3
_NUMBERS = ("MB",)
#: Names of elsewhere, without spaces.
_NAMES = ("hub",)


def listing(kind: str) -> list[Row]:
    """What there is of a kind, such as `claims`."""
    return LISTINGS[kind]()


def listing_table(rows: list[Row], *, wide: bool = False) -> Table:
    """The rows for the terminal: without `wide` only the name and what it is."""
    names = list(rows[0])
    shown = _MAIN_OF.get(names[0], _MAIN)
    main = {names[0], *(name for name in names if name in shown)} if len(names) > _FEW else set(names)
    # A name that is broken cannot be copied.
    columns = [
        TableColumn(name, number=name in _NUMBERS, whole=name in (names[0], *_NAMES), extra=name not in main)
        for name in names
    ]
    cells = [TableRow(["" if value is None else str(value) for value in row.values()]) for row in rows]
    return terminal_table("", columns, cells, wide=wide)


def _claims() -> list[Row]:
    return [
        {"claim": c.name, "statement": c.statement, "source": c.citation, "judged by": c.command}
        for c in CLAIMS.values()
    ]


def _references() -> list[Row]:
    return [
        {
            "reference": reference.name,
            "role": reference.role.value,
            "random": "yes" if reference.random else "no",
            "what": reference.text,
        }
        for reference in REFERENCES.values()
    ]


def _theories() -> list[Row]:
    known = [(theory.name, guard_of(theory), theory.text) for theory in THEORIES.values()]
    known.append((PRIMAL_SVD.name, PRIMAL_SVD.guard, PRIMAL_SVD.text))
    return [{"theory": name, "decided by heads with": guard.text, "what": text} for name, guard, text in known]


def _recipes() -> list[Row]:
    return [
        {"recipe": name, "data": read_recipe(name).data, "what": read_recipe(name).about} for name in recipe_names()
    ]


def _attacks() -> list[Row]:
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


def _corruptions() -> list[Row]:
    return [{"corruption": name, "AlexNet's error": f"{ALEXNET_ERRORS[name]:.1%}"} for name in CORRUPTIONS]


def _noises() -> list[Row]:
    return [{"noise": noise.name, "what": noise.text} for noise in NOISES.values()]


def _attention() -> list[Row]:
    return [
        {"attention": v.name, "module": v.module.__name__, "formula": v.formula, "source": v.citation}
        for v in VARIANTS.values()
    ]


def _models() -> list[Row]:
    """Models that need no hub, and those of the study's Table 1."""
    packaged: list[Row] = [
        {
            "model": model.name,
            "field": model.field,
            "MB": None if model.megabytes is None else str(model.megabytes),
            "licence": model.licence,
            "here": "yes" if model.is_here else "no",
            "reads": model.reads,
            "what": model.architecture,
            "hub": model.hub,
        }
        for model in catalogue().values()
    ]
    published: list[Row] = [
        {
            "model": f"timm:{name}",
            "field": "vision",
            "MB": None,
            "licence": None,
            "here": "no" if data_weights(name) is None else "yes",
            "reads": "images",
            "what": "of Table 1",
            "hub": f"timm/{name}.{tag}",
        }
        for name, tag in VISION_MODELS.items()
    ]
    return packaged + published


def _measures() -> list[Row]:
    return [
        {
            "measure": measure.name,
            "compares": measure.scope.value,
            "closer": measure.closer,
            "ideal": None if measure.ideal is None else f"{measure.ideal:g}",
            "needs": measure.guard.text,
            "cost": measure.cost.value,
            "what": measure.text if measure.default else f"{measure.text} (on request)",
        }
        for measure in MEASURES.values()
    ]


LISTINGS: Mapping[str, Callable[[], list[Row]]] = {
    "models": _models,
    "claims": _claims,
    "measures": _measures,
    "references": _references,
    "theories": _theories,
    "attention": _attention,
    "recipes": _recipes,
    "attacks": _attacks,
    "corruptions": _corruptions,
    "noises": _noises,
}
