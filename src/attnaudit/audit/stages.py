"""Where the time of an audit goes: a clock that watches functions while a real audit runs.

Nothing of the audit is repeated or imitated. Functions are wrapped for the time of a run, and every second goes to the
innermost of them that is running, so that the stages add up to the whole. On a GPU the clock waits for the device
whenever a stage begins or ends: this takes time itself, so that the whole must also be timed without the clock.
"""

from __future__ import annotations

import functools
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import GeneratorType, ModuleType
from typing import Any

#: What is outside of all stages, and of all passes; and the pass of what other threads do in the meantime.
ELSE, AROUND, BESIDE = "everything else", "around", "in other threads"


@dataclass(frozen=True)
class Hook:
    """A function whose time is that of a stage, and where it is found: in modules that import it, a class, an object.

    `begins` is the pass over the heads that it begins, if it does; it may depend on the arguments.
    """

    function: Callable[..., Any]
    stage: str | None
    owner: Any = None
    attribute: str = ""
    begins: str | Callable[..., str] | None = None


class StageClock:
    """Seconds by pass and stage.

    Args:
        now: reads a clock.
        wait: lets a device finish what it was given.
        whole: if `now` is the clock of one thread, reads that of all of them. What other threads do is counted then,
            in a pass of its own; otherwise it happens in the meantime, and costs nothing.
    """

    def __init__(
        self,
        now: Callable[[], float],
        wait: Callable[[], object] = lambda: None,
        whole: Callable[[], float] | None = None,
    ) -> None:
        self.seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._now, self._wait, self._whole = now, wait, whole
        self._running = [(AROUND, ELSE)]
        self._thread, self._others = threading.get_ident(), set[int]()
        self._last = 0.0

    @contextmanager
    def started(self) -> Iterator[None]:
        """Count from here to the end of the block."""
        self._wait()
        self._last = self._now()
        begun = self._whole() if self._whole is not None else 0.0
        try:
            yield
        finally:
            self._count()
            if self._whole is not None:
                rest = self._whole() - begun - sum(self.seconds.values())
                self.seconds[BESIDE, ELSE] += max(rest, 0.0)

    @contextmanager
    def stage(self, name: str | None = None, begins: str | None = None) -> Iterator[None]:
        """What happens in the block belongs to this stage, or to the pass that begins."""
        if threading.get_ident() != self._thread:
            with self._beside(name or ELSE):
                yield
            return
        self._count()
        before = self._running[-1]
        self._running.append((begins or before[0], name or (ELSE if begins else before[1])))
        try:
            yield
        finally:
            self._count()
            self._running.pop()

    @contextmanager
    def _beside(self, name: str) -> Iterator[None]:
        own = threading.get_ident()
        if self._whole is None or own in self._others:  # the outermost stage of another thread is enough
            yield
            return
        self._others.add(own)
        begun = self._now()
        try:
            yield
        finally:
            self.seconds[BESIDE, name] += self._now() - begun
            self._others.remove(own)

    def _count(self) -> None:
        self._wait()
        now = self._now()
        self.seconds[self._running[-1]] += now - self._last
        self._last = now

    def watched(self, hook: Hook) -> Callable[..., Any]:
        """The function of a hook, which tells the clock when it begins and ends; a generator each time it goes on."""

        @functools.wraps(hook.function)
        def timed(*arguments: Any, **options: Any) -> Any:
            begins = hook.begins(*arguments, **options) if callable(hook.begins) else hook.begins
            with self.stage(hook.stage, begins):
                found = hook.function(*arguments, **options)
            return self._going_on(found, hook.stage, begins) if isinstance(found, GeneratorType) else found

        return timed

    def _going_on(self, generator: Iterator[Any], name: str | None, begins: str | None) -> Iterator[Any]:
        while True:
            with self.stage(name, begins):
                try:
                    found = next(generator)
                except StopIteration:
                    return
            yield found


@contextmanager
def watching(clock: StageClock, packages: Sequence[ModuleType], hooks: Iterable[Hook]) -> Iterator[None]:
    """Put watched functions in the place of those of the hooks, wherever packages have them; undone at the end."""
    with ExitStack() as undo:
        for hook in hooks:
            watched = clock.watched(hook)
            for owner, attribute in _places(packages, hook):
                undo.callback(_set, owner, attribute, vars(owner)[attribute])
                _set(owner, attribute, watched)
        yield


def _set(owner: Any, attribute: str, value: Any) -> None:
    if isinstance(owner, type | ModuleType):
        setattr(owner, attribute, value)
    else:  # an entry of a registry, which is frozen
        object.__setattr__(owner, attribute, value)


def _places(packages: Sequence[ModuleType], hook: Hook) -> list[tuple[Any, str]]:
    """Every name under which loaded modules have a function: `from … import` gives each of them one of its own."""
    if hook.owner is not None:
        return [(hook.owner, hook.attribute)]
    modules = [module for package in packages for module in loaded_modules(package)]
    places = [(module, name) for module in modules for name, value in vars(module).items() if value is hook.function]
    if not places:
        raise LookupError(f"No module has {hook.function!r}.")
    return places


def loaded_modules(package: ModuleType) -> Iterator[ModuleType]:
    """A package and all modules below it that were imported so far."""
    yield package
    for value in list(vars(package).values()):
        if isinstance(value, ModuleType) and value.__name__.rpartition(".")[0] == package.__name__:
            yield from loaded_modules(value)
