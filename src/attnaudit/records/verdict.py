"""What a run says of a claim: a word, its reason, and the scores behind it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: Least area under the curve of planted against null heads for a measure to decide anything.
POWER = 0.95


class VerdictWord(StrEnum):
    """What the evidence says of a claim."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    INDISTINGUISHABLE = "indistinguishable"
    NOT_IDENTIFIABLE = "not identifiable"
    NOT_MEASURABLE = "not measurable"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Score:
    """What one measure says of one model; `interval` is None for a single input."""

    measure: str
    mean: float | None
    interval: tuple[float, float] | None
    auc: float | None
    heads: int
    rejected: int
    unidentifiable: int
    observed: float | None = None
    null: float | None = None
    null_name: str | None = None
    planted: float | None = None

    @property
    def has_power(self) -> bool:
        """Whether planted and null heads are told apart."""
        return self.auc is not None and self.auc >= POWER


@dataclass(frozen=True)
class Verdict:
    """What the evidence says of one claim for one model: a word, the reason, the deciding scores, and others shown."""

    claim: str
    model: str
    word: VerdictWord
    reason: str
    scores: tuple[Score, ...] = ()
    shown: tuple[Score, ...] = ()


@dataclass(frozen=True)
class Rank:
    """One theory on one model: the mean of its scores, each of them, and the word they come to."""

    model: str
    theory: str
    mean: float | None
    scores: tuple[Score, ...]
    word: VerdictWord
