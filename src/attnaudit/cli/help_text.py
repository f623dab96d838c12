"""What `--help` prints of a command: its docstring, and its options without the types of switches."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

#: What Markdown would take for emphasis, HTML or a link, and leave out.
_MARKUP = re.compile(r"([\\*_<>\[\]])")


class PlainCommand(TyperCommand):
    """A command whose switches are shown without a type: they take no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, and `--help`."""
        found: list[Any] = super().get_params(ctx)
        for each in found:
            if isinstance(each, TyperOption) and each.is_flag:
                each.metavar = ""
        return found


def add_command(
    app: typer.Typer, name: str, command: Callable[..., Any], cls: type[PlainCommand] = PlainCommand
) -> None:
    """Add a function as a command, with its docstring as help."""
    app.command(name, cls=cls, help=help_text(command))(command)


def help_text(command: Callable[..., Any]) -> str:
    """The docstring as Markdown: every example on its own line, and no character of it taken for markup."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return _MARKUP.sub(r"\\\1", "\n\n".join(_paragraph(text) for text in paragraphs))


def _paragraph(text: str) -> str:
    first, *rest = (line.strip() for line in text.splitlines())
    return "\n\n".join([first, *rest]) if first == "Examples:" else "\n".join([first, *rest])
