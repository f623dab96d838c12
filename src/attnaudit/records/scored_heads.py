"""What is left of the rows of one measure when heads are scored: enough for every verdict, whatever its thresholds.

A score needs no row once the mean over each independent input is taken: its interval follows from number, mean,
deviation and skewness of these means (`Moments`), at any level of confidence and for any threshold. So these are all
that a run has to keep, for each head, each layer and all heads together; `docs/theory/aggregates.md` derives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from attnaudit.records.head_values import HeadName
from attnaudit.records.moments import Moments, Offset


@dataclass(frozen=True)
class Average:
    """Scores averaged over several heads, by input; `share` is how much of the offset of one head is left in them."""

    inputs: Moments
    share: float


@dataclass(frozen=True)
class ScoredLayer:
    """The same of the heads of one layer."""

    layer: int
    average: Average


@dataclass(frozen=True)
class ScoredHead:
    """The score of one head, by input."""

    name: HeadName
    inputs: Moments


@dataclass(frozen=True)
class RatioOfMeans:
    """A ratio of two means over inputs, its denominator, and its linearisation (above - ratio * below)/mean(below)."""

    ratio: float
    below: Moments
    linearised: Moments


@dataclass(frozen=True)
class ScoredHeads:
    """One measure of one model, scored from 0, the null, to 1, the theory; see `Score` for what the parts mean.

    `offset` is the error that chance leaves in the null of every head, `noise` the mean score of planted values at each
    share of noise: empty if it was not tried, NaN if none of the inputs that it was tried on has a number. `unscored`
    heads have no score on any input, although no theorem excludes them.
    """

    inputs: int = 0
    informative: int = 0
    uninformative: int = 0
    rejected: int = 0
    unidentifiable: int = 0
    unscored: int = 0
    impossible: Mapping[str, int] = field(default_factory=dict)
    null: str | None = None
    all: Average | None = None
    layers: tuple[ScoredLayer, ...] = ()
    heads: tuple[ScoredHead, ...] = ()
    offset: Offset | None = None
    reach: Moments | None = None
    fitted_reach: Moments | None = None
    realised: RatioOfMeans | None = None
    noise: tuple[float, ...] = ()
    gauges: tuple[float, float] | None = None
    means: Mapping[str, float] | None = None
