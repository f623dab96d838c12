"""How far a command is and how long it will take: as a bar in a terminal, as a line every so often in a log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from attnaudit.report.console import message_console, say

if TYPE_CHECKING:
    from attnaudit.records.engine import Progress as ProgressFunction

#: Seconds before the first line; what takes less needs none.
_FIRST = 5.0
#: The pause doubles from line to line, up to this.
_LONGEST_PAUSE = 60.0
#: Seconds from which on a command says how to do less.
_LONG = 60.0


class Pace:
    """How much is done, since when, and how long the rest will take if it goes on like this."""

    def __init__(self, label: str, now: Callable[[], float] = time.monotonic) -> None:
        self._label, self._now = label, now
        self._begun = self._counted_since = now()
        self._start: int | None = None
        self._done = self._total = 0

    def told(self, done: int, total: int, words: str) -> None:
        """Take note of what is done.

        The pace is that since the first call: neither what was done before it nor the time that it took, such as the
        compilation of a model, says anything about the rest.
        """
        if self._start is None:
            self._start, self._counted_since = done, self._now()
        self._done, self._total = done, total

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self._now() - self._begun

    @property
    def left(self) -> float | None:
        """Seconds that the rest will take; None before anything was finished."""
        finished = self._done - (self._start or 0)
        return self._counted / finished * (self._total - self._done) if finished else None

    @property
    def _counted(self) -> float:
        """Seconds that the pace is known from."""
        return self._now() - self._counted_since

    @property
    def line(self) -> str:
        """For a log."""
        so_far = f"{duration(self.elapsed)} so far"
        if not self._total:
            return f"{self._label}: {so_far}"
        share = f"{self._done:,} of {self._total:,} ({self._done / self._total:.0%})"
        rest = "" if self.left is None else f", about {duration(self.left)} left at this pace"
        return f"{self._label}: {share}, {so_far}{rest}"

    def advice(self, less: str) -> str | None:
        """What all of it will take, and how to do less, if it will be long and that is known."""
        if self.left is None or self._counted < _FIRST or self.elapsed + self.left < _LONG:
            return None
        return f"This will take about {duration(self.elapsed + self.left)} in all; {less}."


def duration(seconds: float) -> str:
    """Seconds in the unit that a reader would use.

    >>> duration(42.4), duration(600), duration(10_000), duration(1e6)
    ('42 s', '10 min', '2.8 h', '12 days')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 2 * 86400 else f"{seconds / 86400:.0f} days"


@contextmanager
def shown_progress(
    progress: ProgressFunction | bool, label: str, less: str = "", *, bar: bool = True
) -> Iterator[ProgressFunction]:
    """The function that reports progress: the caller's, or one that updates a bar or, in a log, writes lines.

    Args:
        progress: the caller's function; True for a bar or lines, False for neither.
        label: what is being done.
        less: how to do less, which is said once if it takes long.
        bar: False for lines in a terminal, too, where the bar's own work would be measured.
    """
    if not isinstance(progress, bool):
        yield progress
        return
    if not progress:
        yield lambda done, total, words: None
        return
    pace, advised = Pace(label), not less
    with _bar_or_lines(pace, label, bar=bar) as move:

        def told(done: int, total: int, words: str) -> None:
            nonlocal advised
            pace.told(done, total, words)
            move(done, total, words)
            if not advised and (advice := pace.advice(less)):
                say(advice)
                advised = True

        yield told


@contextmanager
def busy(label: str, *, spinner: bool = True) -> Iterator[None]:
    """Say what is being done while there is nothing to count: a spinner in a terminal, lines in a log.

    `spinner` is False where its own work would be measured.
    """
    console = message_console()
    if spinner and _is_interactive(console):
        with console.status(label):
            yield
    else:
        with _lines(Pace(label)):
            yield


@contextmanager
def _bar_or_lines(pace: Pace, label: str, *, bar: bool) -> Iterator[ProgressFunction]:
    console = message_console()
    if not (bar and _is_interactive(console)):
        with _lines(pace):
            yield lambda done, total, words: None
        return
    with _bar(console) as drawn:
        task = drawn.add_task(label, total=None)
        yield lambda done, total, words: drawn.update(task, completed=done, total=total, description=words or label)


def _is_interactive(console: Console) -> bool:
    return console.is_terminal or console.is_jupyter


@contextmanager
def _lines(pace: Pace) -> Iterator[None]:
    """Write a line after five seconds, and then after longer and longer pauses, in a thread of its own."""
    ended = threading.Event()

    def write() -> None:
        pause = _FIRST
        while not ended.wait(pause):
            say(pace.line)
            pause = min(2 * pause, _LONGEST_PAUSE)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


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
