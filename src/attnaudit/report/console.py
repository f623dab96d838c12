"""Where things are printed: results on stdout, messages and progress on stderr."""

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

#: Wide enough for our tables when the output is not a terminal.
_PIPE_WIDTH = 120


def data_console() -> Console:
    """For results."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def print_json(content: Any) -> None:
    """A result as JSON on stdout; a number that is not finite becomes null, since JSON has no word for it."""
    data_console().print_json(json.dumps(_finite(content), ensure_ascii=False))


def _finite(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


@cache
def message_console() -> Console:
    """For everything else. There is one, so that messages appear above a progress bar and not across it."""
    return Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """Print one line that is not a result."""
    message_console().print(text, markup=False, soft_wrap=True)


@contextmanager
def printed_messages() -> Iterator[None]:
    """While it lasts, what the package logs is printed, a plain line each."""
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
    """What to tell of progress: the caller's own function, or a bar with the time left.

    The bar appears only where somebody sees it, in a terminal or a notebook; False is no bar.
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
