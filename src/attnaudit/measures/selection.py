"""What is measured of every head, and compared with what: measures, theories and references as objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from attnaudit.errors import UsageError, unknown
from attnaudit.measures.measure import Measure
from attnaudit.measures.references import REFERENCES, Reference
from attnaudit.measures.registry import DEFAULT_MEASURES, MEASURES
from attnaudit.protocol import Protocol
from attnaudit.records.ranges import check_seed, check_whole
from attnaudit.theories.base import Theory, is_fitted
from attnaudit.theories.registry import PRIMAL_SVD, THEORIES

T = TypeVar("T", Measure, Theory, Reference)


@dataclass(frozen=True)
class Selection:
    """Measures, theories and references, how often random references are drawn, the seed, and the protocol."""

    measures: tuple[Measure, ...]
    theories: tuple[Theory, ...]
    references: tuple[Reference, ...] = ()
    repeats: int = 1
    seed: int = 0
    protocol: Protocol = Protocol.EXACT

    def __post_init__(self) -> None:
        check_whole(1, repeats=self.repeats)
        check_seed(self.seed)
        if not self.theories:
            raise UsageError("theories must name at least one theory of values, got none.")

    @property
    def predicting(self) -> tuple[Theory, ...]:
        """The theories that predict the values of every head by itself; others are fitted to several inputs first."""
        return tuple(theory for theory in self.theories if not is_fitted(theory))

    @property
    def own(self) -> tuple[Measure | Theory | Reference, ...]:
        """The objects that no registry knows: another process cannot find them by name."""
        return (
            *(measure for measure in self.measures if measure.name not in MEASURES),
            *(theory for theory in self.theories if theory.name not in THEORIES),
            *(reference for reference in self.references if reference.name not in REFERENCES),
        )

    @property
    def identity(self) -> dict[str, Any]:
        """As plain data, all objects by their names."""
        return {
            "protocol": self.protocol.value,
            "measures": [measure.name for measure in self.measures],
            "theories": [theory.name for theory in self.theories],
            "references": [reference.name for reference in self.references],
            "repeats": self.repeats,
            "seed": self.seed,
        }


def select(
    *,
    measures: Iterable[str | Measure] = DEFAULT_MEASURES,
    theories: Iterable[str | Theory] = ("kpca",),
    references: Iterable[str | Reference] = (),
    repeats: int = 1,
    seed: int = 0,
    protocol: Protocol = Protocol.EXACT,
) -> Selection:
    """The selection of these names, and of objects of the user's own.

    Raises:
        UsageError: a name is unknown, or two objects have the same name.
    """
    of_values = [theory for theory in theories if theory != PRIMAL_SVD.name]  # every Primal layer is measured with it
    return Selection(
        _resolved("measure", Measure, MEASURES, measures),
        _resolved("theory", Theory, THEORIES, of_values),
        _resolved("reference", Reference, REFERENCES, references),
        repeats,
        seed,
        protocol,
    )


def entries_of(kind: str, given: Iterable[T | str]) -> list[T | str]:
    """The entries of a list that a user gave.

    Raises:
        UsageError: it is a single name, of which Python would take the letters.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"Each {kind} must be an entry of a list, as in [{given!r}], got {given!r} alone.")
    return list(given)


def _resolved(kind: str, wanted: type[Any], known: Mapping[str, T], given: Iterable[str | T]) -> tuple[T, ...]:
    """Objects by name, or as they are, each once; a name may also mean an object that is given beside it."""
    entries = entries_of(kind, given)
    own: dict[str, T] = {}
    for entry in entries:
        if isinstance(entry, str):
            continue
        if isinstance(entry, type) or not isinstance(entry, wanted):
            raise UsageError(f"A {kind} must be a name or a {wanted.__name__}, got {entry!r}.")
        if own.setdefault(entry.name, entry) is not entry or known.get(entry.name, entry) is not entry:
            raise UsageError(f"Two objects are a {kind} called {entry.name!r}: give yours another name.")
    names = dict.fromkeys(entry if isinstance(entry, str) else entry.name for entry in entries)
    everything = {**known, **own}
    for name in names:
        if name not in everything:
            raise unknown(kind, name, everything)
    return tuple(everything[name] for name in names)
