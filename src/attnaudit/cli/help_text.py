"""Docstrings of commands as `--help` prints them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

#: What Markdown would take for emphasis, HTML or a link, and leave out.
_MARKUP = re.compile(r"([\\*_<>\[\]])")


def help_text(command: Callable[..., Any]) -> str:
    """The docstring as Markdown: every example on its own line, and no character of it taken for markup."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return _MARKUP.sub(r"\\\1", "\n\n".join(_paragraph(text) for text in paragraphs))


def _paragraph(text: str) -> str:
    first, *rest = (line.strip() for line in text.splitlines())
    return "\n\n".join([first, *rest]) if first == "Examples:" else "\n".join([first, *rest])
