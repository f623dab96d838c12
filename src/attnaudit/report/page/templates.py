"""The parts that pages are made from; everything that is filled in is escaped."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from attnaudit.report.page.numbers import shown


def templates() -> Environment:
    """The templates by file name."""
    environment = Environment(
        loader=PackageLoader("attnaudit.report.page", "parts"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    return environment


def part(name: str) -> str:
    """A style or a script as it is."""
    return files("attnaudit.report.page").joinpath("parts", name).read_text(encoding="utf-8")
