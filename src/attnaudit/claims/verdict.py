"""From scores to a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from attnaudit.statistics.scores import Score

#: A score at or above this is "the theory"; settable.
THRESHOLD = 0.8
#: More than this share of heads rejected, and nothing is said.
REJECTED_SHARE = 0.05


class Word(StrEnum):
    """What the evidence says of a claim."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    INDISTINGUISHABLE = "indistinguishable"
    NOT_IDENTIFIABLE = "not identifiable"
    NOT_MEASURABLE = "not measurable"
    INCONCLUSIVE = "inconclusive"


MEANINGS = {
    Word.SUPPORTED: "the observed heads score like heads for which the claim is exactly true",
    Word.REFUTED: "above chance, but far from the claim",
    Word.INDISTINGUISHABLE: "no better than references in which the claim cannot be true",
    Word.NOT_IDENTIFIABLE: "these inputs or measures cannot tell the claim from chance",
    Word.NOT_MEASURABLE: "too much could not be computed, or was not asked for",
    Word.INCONCLUSIVE: "the interval is too wide to decide",
}


@dataclass(frozen=True)
class Verdict:
    """What the evidence says of one claim for one model: a word, the reason, the deciding scores, and others shown."""

    claim: str
    model: str
    word: Word
    reason: str
    scores: tuple[Score, ...] = ()
    shown: tuple[Score, ...] = ()


def word_of(score: Score, threshold: float = THRESHOLD) -> Word:
    """The rule for one measure."""
    total = score.heads + score.rejected
    if total == 0:
        return Word.NOT_IDENTIFIABLE if score.unidentifiable else Word.NOT_MEASURABLE
    if score.rejected > REJECTED_SHARE * total:
        return Word.NOT_MEASURABLE
    if not score.has_power:
        return Word.NOT_IDENTIFIABLE
    if score.interval is None:
        return Word.INCONCLUSIVE
    low, high = score.interval
    if low >= threshold:
        return Word.SUPPORTED
    if low <= 0:
        return Word.INDISTINGUISHABLE if high < threshold else Word.INCONCLUSIVE
    return Word.REFUTED if high < threshold else Word.INCONCLUSIVE


def combine(words: Sequence[Word]) -> Word:
    """The rule for several deciding measures; those without power or numbers do not decide."""
    deciding = [word for word in words if word not in (Word.NOT_IDENTIFIABLE, Word.NOT_MEASURABLE)]
    if not deciding:
        return Word.NOT_MEASURABLE if Word.NOT_MEASURABLE in words else Word.NOT_IDENTIFIABLE
    if all(word is Word.SUPPORTED for word in deciding):
        return Word.SUPPORTED
    if all(word is Word.INDISTINGUISHABLE for word in deciding):
        return Word.INDISTINGUISHABLE
    if Word.REFUTED in deciding or Word.INDISTINGUISHABLE in deciding:
        return Word.REFUTED
    return Word.INCONCLUSIVE
