"""Printing: results on stdout, messages on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

#: The width of tables if the output is not a terminal.
_PIPE_WIDTH = 120


def data_console() -> Console:
    """The console for results."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def talk_console() -> Console:
    """The console for messages."""
    return Console(stderr=True, highlight=False)


def print_json(content: Any) -> None:
    """Print a result as JSON on stdout; numbers that are not finite, which JSON lacks, become null."""
    data_console().print_json(json.dumps(_finite(content), ensure_ascii=False))


def _finite(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def say(text: str) -> None:
    """Print a message on stderr."""
    talk_console().print(text, markup=False, soft_wrap=True)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar with the remaining time; yields the function that updates it."""
    with _bar() as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def detailed_progress_bar(label: str) -> Iterator[tuple[Callable[[int, int, str], None], Callable[[str], None]]]:
    """Show a progress bar with a changing description; also yields a function that prints lines above it."""
    with _bar() as bar:
        task = bar.add_task(label, total=None)

        def move(done: int, total: int, words: str) -> None:
            bar.update(task, completed=done, total=total, description=words)

        yield move, lambda line: bar.console.print(line, markup=False, soft_wrap=True)


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=talk_console(),
    )
