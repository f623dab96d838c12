"""What the engine asks of a producer: a plan, the units of work it comes to, and workers that compute them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from attnaudit.records.notes import Notes
from attnaudit.records.run_folder import RunFolder

#: Called with (units done, units in total, the label of the unit that is computed next).
Progress = Callable[[int, int, str], None]

#: Key and content of each part, as it is finished.
Parts = Generator[tuple[str, bytes], None, None]


class Unit(Protocol):
    """A piece of work that becomes one part of the run folder; it can be pickled where the plan has a recipe for it."""

    @property
    def key(self) -> str:
        """A name for everything its rows depend on: equal keys, equal rows."""

    @property
    def label(self) -> str:
        """What is computed, in a few words, for a progress bar."""


AnyUnit = TypeVar("AnyUnit", bound=Unit)
_Computed = TypeVar("_Computed", bound=Unit, contravariant=True)


class Worker(Protocol[_Computed]):
    """Computes units in one process, one after the other, and may keep what the next one needs too."""

    def context(self) -> AbstractContextManager[None]:
        """What must hold while units are computed, such as the number of threads or the precision."""

    def compute(self, unit: _Computed, following: _Computed | None = None) -> tuple[pa.Table, Notes]:
        """The rows of a unit, and what there is to say beside them; what the following one needs may be begun."""


class WorkerRecipe(Protocol[_Computed]):
    """How to build a worker in another process: small, picklable, and equal to every other recipe for the same one."""

    @property
    def modules(self) -> Sequence[str]:
        """What building and working will import, so that it can be imported once for several processes."""

    def build(self, memory: int, shared: Path | None = None) -> Worker[_Computed]:
        """A worker for a process that may take `memory` bytes.

        `shared` is a folder in which the workers of a machine may leave something for each other, until they end.
        """

    def __hash__(self) -> int: ...


class Plan(Protocol[AnyUnit]):
    """What is to be computed, and by whom."""

    @property
    def identity(self) -> dict[str, Any]:
        """What a run folder belongs to, as plain data; a folder with another identity is refused."""

    @property
    def description(self) -> dict[str, Any]:
        """What else `run.json` says of the run; without `parts`, those are all units."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of every part."""

    @property
    def units(self) -> Sequence[AnyUnit]:
        """All units, in the order in which they are computed and read."""

    def worker(self, memory: int) -> Worker[AnyUnit]:
        """A worker for all units in this process, which may take `memory` bytes."""

    def recipe(self, unit: AnyUnit) -> WorkerRecipe[AnyUnit] | None:
        """How another process builds a worker for this unit; None where only this process can compute it."""


class Keeper(Protocol):
    """Puts something else in the place of parts, such as summaries of them."""

    def settled(self, folder: RunFolder) -> Collection[str]:
        """The keys of units that need no part any more."""

    def stored(self, folder: RunFolder, unit: str) -> None:
        """Told of every unit that has got its part."""


#: A unit, and what another process needs to compute it.
Task = tuple[AnyUnit, WorkerRecipe[AnyUnit]]
