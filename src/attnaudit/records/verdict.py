"""What a run says of a claim: a word, what was found, the reason, and the scores behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from attnaudit.records.later_fields import added_later


class VerdictWord(StrEnum):
    """What the evidence says of a claim."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


class Finding(StrEnum):
    """Why a claim is supported, refuted or undecided."""

    IN_ALL_HEADS = "in all heads"
    IN_SOME_HEADS = "in some heads"
    ON_AVERAGE = "on average"
    SHOWN = "shown"
    PARTIAL = "partial"
    AT_CHANCE = "at chance"
    BELOW_CHANCE = "below chance"
    IMPOSSIBLE = "impossible"
    UNREALISABLE = "unrealisable"
    NO_GAIN = "no gain"
    LOSS = "a loss"
    OTHER_NUMBERS = "other numbers"
    IN_BETWEEN = "in between"
    TOO_FEW_INPUTS = "too few inputs"
    TOO_WIDE = "too wide"
    NOT_IDENTIFIABLE = "not identifiable"
    MEASURES_DISAGREE = "measures disagree"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class MeanEstimate:
    """A mean with its interval; None for fewer than two independent inputs."""

    mean: float
    interval: tuple[float, float] | None

    def __str__(self) -> str:
        if self.interval is None:
            return f"{self.mean:z.2f}"
        return f"{self.mean:z.2f} [{self.interval[0]:z.2f}, {self.interval[1]:z.2f}]"


@dataclass(frozen=True)
class HeadScore:
    """One head of a network: its score over inputs, and whether it satisfies the claim or is at least above chance."""

    layer: int
    head: int
    score: MeanEstimate
    satisfies: bool
    above_chance: bool


@dataclass(frozen=True)
class LayerScore:
    """The mean score of the heads of a layer."""

    layer: int
    score: MeanEstimate

    def above(self, chance: float) -> bool:
        """Whether all of the interval is above chance."""
        return self.score.interval is not None and self.score.interval[0] > chance


@dataclass(frozen=True)
class Score:
    """What one measure says of one model, on a scale from 0, the null, to 1, the theory itself.

    Attributes:
        measure: its name.
        score: (observed - null) / (planted - null).
        reach: the same of the best projection, on inputs it was not fitted to; only of measures that it maximises.
        fitted_reach: the same on the inputs it was fitted to, the upper end of what any network could reach.
        realised: (observed - null) / (best projection - null).
        tolerance: the share of noise at which planted values fall below the threshold; None if noise was not tried, 0
            if it was tried on inputs that have no number.
        gauges: the smallest and largest score in other gauges of the same network, on a sample of inputs.
        inputs: how many independent inputs there are; those of one group count as one.
        heads: every head that has a score.
        layers: every layer that has one.
        informative: rows that have one.
        uninformative: rows for which the planted values are no closer to the theory than the null.
        rejected: rows without a number.
        unidentifiable: rows that the guard of the theory does not accept.
        unscored: how many heads have no score on any input.
        impossible: how many heads the theory cannot be true of, by theorem; they are not scored.
        means: of the measure itself, by reference.
        null: the name of the reference that is the null.
    """

    measure: str
    score: MeanEstimate | None = None
    reach: MeanEstimate | None = None
    fitted_reach: MeanEstimate | None = None
    realised: MeanEstimate | None = None
    tolerance: float | None = None
    gauges: tuple[float, float] | None = None
    inputs: int = 0
    heads: tuple[HeadScore, ...] = ()
    layers: tuple[LayerScore, ...] = ()
    informative: int = 0
    uninformative: int = 0
    rejected: int = 0
    unidentifiable: int = 0
    unscored: int = added_later(0, unwritten=True)
    impossible: Mapping[str, int] = field(default_factory=dict)
    means: dict[str, float] | None = None
    null: str | None = None

    def of(self, reference: str) -> float | None:
        """Where the mean of a reference is on the scale from the null to the theory."""
        means = self.means or {}
        if self.null is None or any(name not in means for name in (reference, self.null, "planted")):
            return None
        zero = means[self.null]
        return (means[reference] - zero) / (means["planted"] - zero)


@dataclass(frozen=True)
class Verdict:
    """What the evidence says of one claim for one model: `satisfying` of `heads` heads satisfy it by every measure.

    Among the heads are those of which it cannot be true, by a theorem. `missing` says what an undecided claim lacks.
    """

    claim: str
    model: str
    word: VerdictWord
    finding: Finding
    reason: str
    scores: tuple[Score, ...] = ()
    shown: tuple[Score, ...] = ()
    satisfying: int = 0
    heads: int = 0
    missing: str = added_later("")

    @property
    def of_every_network(self) -> bool:
        """Whether a theorem decides it for every network, and not only for heads like these."""
        return self.finding is Finding.IMPOSSIBLE and not self.heads

    @property
    def words(self) -> str:
        """Word and finding, such as `refuted (at chance)` or `supported in 3 of 10 heads`."""
        if self.finding is Finding.IN_SOME_HEADS:
            return f"{self.word} in {self.satisfying} of {self.heads} heads"
        if self.word is VerdictWord.SUPPORTED:
            return f"{self.word} {self.finding}" if self.finding is not Finding.SHOWN else self.word.value
        return f"{self.word} ({self.finding})"


@dataclass(frozen=True)
class Rank:
    """One theory on one model, by the deciding measure that says least of it.

    Attributes:
        model: its name.
        theory: its name.
        mean: of that measure's score over all heads; None without a score.
        scores: of all measures that the theory is judged by.
        word: what they come to.
        finding: why.
        place: 1 for the best; None for a theory that is at chance or worse, not decided, or true by construction.
        above_chance: heads that every deciding measure puts above chance, false discoveries controlled.
        heads: that have a score.
        silent: measures that decide nothing here; they say least of a theory only if all are silent.
    """

    model: str
    theory: str
    mean: float | None
    scores: tuple[Score, ...]
    word: VerdictWord
    finding: Finding
    place: int | None = None
    above_chance: int = 0
    heads: int = 0
    silent: tuple[str, ...] = added_later((), unwritten=True)

    @property
    def deciding(self) -> list[Score]:
        """The scores that decide, or all if none does."""
        return [score for score in self.scores if score.measure not in self.silent] or list(self.scores)

    @property
    def least(self) -> Score | None:
        """The deciding measure that says least of the theory."""
        found = [score for score in self.deciding if score.score is not None]
        return min(found, key=lambda own: own.score.mean if own.score else 0.0, default=None)

    @property
    def layers(self) -> tuple[LayerScore, ...]:
        """The score of every layer, by the measure that says least of it there."""
        found: dict[int, LayerScore] = {}
        for own in (each for score in self.deciding for each in score.layers):
            if own.layer not in found or own.score.mean < found[own.layer].score.mean:
                found[own.layer] = own
        return tuple(found[layer] for layer in sorted(found))


@dataclass(frozen=True)
class BestTheory:
    """The theory with the highest score among those that a head is above chance for; None if there is none."""

    model: str
    layer: int
    head: int
    theory: str | None
    score: MeanEstimate | None
