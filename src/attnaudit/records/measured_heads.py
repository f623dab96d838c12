"""What verdicts, rankings, tables and pages ask of an audit.

Two can answer: the rows of the run (`HeadRows`), which compute it, and, where rows were not kept, `HeadSummaries`,
which were the answers of the rows once.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnaudit.records.grouped_rows import Group
from attnaudit.records.head_values import HeadTable, Numbers
from attnaudit.records.schema import OBSERVED
from attnaudit.records.scored_heads import ScoredHeads
from attnaudit.records.sketch import OrderedValues, Sketch

Places = NDArray[np.int64]


@dataclass(frozen=True)
class HeadMeans:
    """One measure with the values of one reference, by head: mean and deviation over inputs and windows, and counts.

    `inputs` is how many inputs there are; a head without a number has NaN.
    """

    inputs: int
    layers: Places
    heads: Places
    mean: Numbers
    deviation: Numbers
    counted: Places
    missing: Places


@dataclass(frozen=True)
class LayerQuartiles:
    """One measure by layer: mean and quartiles over heads and inputs."""

    layers: list[int]
    mean: list[float]
    lower: list[float]
    middle: list[float]
    upper: list[float]


@dataclass(frozen=True)
class Distribution:
    """The values of one reference over heads and inputs: `counted` have a number, `missing` should.

    `inputs` is the number of inputs that it was measured on.
    """

    counted: int
    missing: int
    inputs: int
    mean: float | None
    values: OrderedValues | Sketch | None

    def evenly_ranked(self, number: int) -> Numbers:
        """At most `number` of the values, including the smallest and the largest."""
        return np.empty(0) if self.values is None else self.values.evenly_ranked(number)


@dataclass(frozen=True)
class Distributions:
    """The values of a measure, by reference: of so many identifiable heads; `unidentifiable` are left out."""

    heads: int
    unidentifiable: int
    references: Mapping[str, Distribution]


class MeasuredHeads(typing.Protocol):
    """Questions about a measure of a model for a theory, which make a `Group`."""

    @property
    def words(self) -> str:
        """What there is, with its number."""

    def measured(self) -> Sequence[Group]:
        """Every group, in order of its first row."""

    def scored(self, group: Group, scored: Callable[[HeadTable], ScoredHeads]) -> ScoredHeads:
        """The heads between chance and the theory; `scored` says how, where that was not done before."""

    def means(self, group: Group, reference: str = OBSERVED) -> HeadMeans:
        """Every head over its inputs."""

    def layer_quartiles(self, group: Group) -> LayerQuartiles:
        """Every layer over its observed heads and inputs."""

    def distributions(self, group: Group) -> Distributions:
        """The observed heads and their references."""
