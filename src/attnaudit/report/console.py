"""Printing: results on stdout, messages and progress on stderr."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from attnaudit.records.engine import Progress as ProgressFunction

#: The width of tables if the output is not a terminal, and of those with all of their columns.
_PIPE_WIDTH, _WIDE = 120, 200


def data_console(*, wide: bool = False) -> Console:
    """The console for results; a wide one has room for all columns, whatever the width of the terminal."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
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
    """Print a message on stderr."""
    message_console().print(text, markup=False, soft_wrap=True)


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


@contextmanager
def shown_progress(progress: ProgressFunction | bool, label: str) -> Iterator[ProgressFunction]:
    """The function that reports progress: the caller's, or one that updates a progress bar.

    The bar appears only in a terminal or a notebook, and not if `progress` is False.
    """
    console = message_console()
    if not isinstance(progress, bool):
        yield progress
    elif progress and (console.is_terminal or console.is_jupyter):
        with _bar(console) as bar:
            task = bar.add_task(label, total=None)

            def move(done: int, total: int, words: str) -> None:
                bar.update(task, completed=done, total=total, description=words or label)

            yield move
    else:
        yield _ignore


def _ignore(done: int, total: int, words: str) -> None:
    pass


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )
