"""Templates, styles and scripts of the pages; templates escape all values."""

from __future__ import annotations

from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from attnaudit.report.page.numbers import shown


def templates(package: str = "attnaudit.report.page") -> Environment:
    """The environment of the templates in the folder `parts` of a package."""
    environment = Environment(
        loader=PackageLoader(package, "parts"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    return environment


def part(name: str) -> str:
    """The text of a style or script."""
    return files("attnaudit.report.page").joinpath("parts", name).read_text(encoding="utf-8")
