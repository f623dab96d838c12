"""Printing: results on stdout, messages on stderr."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from rich.console import Console

#: The width of tables if the output is not a terminal and COLUMNS is not set, and of those with all of their columns.
_PIPE_WIDTH, _WIDE = 120, 220
#: How messages are wrapped: so that paths can be copied.
_WHOLE_WORDS: Any = {"break_long_words": False, "break_on_hyphens": False}


def data_console(*, wide: bool = False) -> Console:
    """The console for results; a wide one has room for all columns, whatever the width of the terminal."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else _PIPE_WIDTH
    console = Console(width=width, highlight=False)
    return Console(width=max(_WIDE, console.width), highlight=False) if wide else console


def print_json(content: Any) -> None:
    """Print a result as JSON on stdout; numbers that are not finite, which JSON lacks, become null."""
    data_console().print_json(json.dumps(_finite(content), ensure_ascii=False))


def _finite(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


@cache
def message_console() -> Console:
    """The console for messages; there is only one, so that messages appear above a progress bar."""
    return Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """Print a message on stderr: in a terminal wrapped between words, in a log as one line. No path is broken."""
    console = message_console()
    if console.is_terminal:
        text = "\n".join(textwrap.fill(line, console.width, **_WHOLE_WORDS) for line in text.splitlines())
    console.print(text, markup=False, soft_wrap=True)


@contextmanager
def printed_messages() -> Iterator[None]:
    """Print the log messages of the package inside the block, one line each."""
    log, handler = logging.getLogger("attnaudit"), _Printer()
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class _Printer(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())
