"""What takes two passes over the inputs: a fit to each half of them, and numbers of the other half."""

from __future__ import annotations

import typing
from collections.abc import Collection, Iterator, Mapping

from attnaudit.measures.cross_fits import CrossFits
from attnaudit.measures.gauges import Gauges
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.selection import Selection
from attnaudit.records.schema import Measurement
from attnaudit.theories.fitting import FittedTheory
from attnaudit.theories.registry import ANY_GAUGE


@typing.runtime_checkable
class TwoPasses(typing.Protocol):
    """Add all heads, fit, and measure all heads."""

    def add(self, keys: KeyKernel) -> None:
        """Take the heads of some inputs into account."""

    def fit(self) -> None:
        """End the first pass."""

    def measured(self, keys: KeyKernel) -> Iterator[Measurement]:
        """The numbers of some inputs, with what was fitted to the other half."""


def two_passes(selection: Selection, halves: Mapping[str, int], sample: Collection[str]) -> list[TwoPasses]:
    """Those that the theories of a selection need; `sample` are the inputs on which noise is tried.

    Gauges are fitted to references and observed heads together, and planted in the frame of the keys of both halves,
    which no theory sees: so they have passes of their own.
    """
    found: list[TwoPasses] = []
    if any(isinstance(theory, FittedTheory) for theory in selection.theories):
        found.append(CrossFits(selection, halves, sample))
    if any(theory.name == ANY_GAUGE for theory in selection.theories):
        found.append(Gauges(halves, selection.seed, selection.repeats))
    return found
