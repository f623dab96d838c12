"""A plan without models: every unit is a number, its part the number squared. What happens on the way can be chosen."""

import hashlib
import os
import select
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from attnaudit.errors import InputError
from attnaudit.records.notes import Notes

SCHEMA = pa.schema([("number", pa.int64()), ("square", pa.int64())])
#: Whether a worker of this process is at work.
active = []


@dataclass(frozen=True)
class SquareUnit:
    number: int

    @property
    def key(self):
        return f"square-{self.number}"

    @property
    def label(self):
        return f"{self.number} squared"


def nothing(number):
    """What happens by default before a number is squared."""


def refuse_two(number):
    if number == 2:
        raise InputError("2 cannot be squared.")


def die(number):
    os._exit(1)


def stick(number):
    """Write the number of this process to stdout, and compute for an hour without a step of Python."""
    os.write(1, f"{os.getpid()}\n".encode())
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)


@dataclass(frozen=True)
class DieOnce:
    """Kill the first process but this one that gets a number; the marker tells the next one to live."""

    marker: Path
    home: int

    def __call__(self, number):
        if os.getpid() != self.home and not self.marker.exists():
            self.marker.touch()
            os._exit(1)


@dataclass(frozen=True)
class LogTo:
    """Leave a file for every number, named by the process."""

    folder: Path

    def __call__(self, number):
        (self.folder / f"{number} in {os.getpid()}").touch()


@dataclass(frozen=True)
class SquareWorker:
    before: Callable[[int], None]
    memory: int

    @contextmanager
    def context(self):
        active.append(True)
        try:
            yield
        finally:
            active.pop()

    def compute(self, unit, following=None):
        assert active, "the context is not there"
        self.before(unit.number)
        table = pa.table({"number": [unit.number], "square": [unit.number**2]}, schema=SCHEMA)
        return table, Notes(skipped=((str(unit.number), "for the sake of it"),))


@dataclass(frozen=True)
class SquareRecipe:
    before: Callable[[int], None] = nothing
    log: Path | None = None
    name: str = "only"
    modules: tuple[str, ...] = (__name__,)

    def build(self, memory, shared=None):
        if self.log is not None:
            (self.log / f"{self.name} in {os.getpid()}").open("a").write(f"{memory}\n")
        return SquareWorker(self.before, memory)


@dataclass(frozen=True)
class SquarePlan:
    numbers: tuple[int, ...] = (1, 2, 3, 4)
    before: Callable[[int], None] = nothing
    recipes: tuple[SquareRecipe | None, ...] = ()
    name: str = "squares"

    @property
    def identity(self):
        return {"name": self.name}

    @property
    def description(self):
        return {"numbers": list(self.numbers)}

    @property
    def schema(self):
        return SCHEMA

    @property
    def units(self):
        return tuple(SquareUnit(number) for number in self.numbers)

    def worker(self, memory):
        return SquareWorker(self.before, memory)

    def recipe(self, unit):
        if self.recipes:
            return self.recipes[unit.number % len(self.recipes)]
        return SquareRecipe(self.before)


def has_ended(process):
    """Wait until a process, known by its number, has ended; False if it does not."""
    try:
        handle = os.pidfd_open(int(process))
    except ProcessLookupError:
        return True
    ended, _, _ = select.select([handle], [], [], 60)
    os.close(handle)
    return bool(ended)


def parts(path):
    """Every part of a run folder, byte by byte."""
    return {file.name: file.read_bytes() for file in sorted((path / "evidence").iterdir())}
