"""From scores and differences to a word."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit import defaults
from attnaudit.records.verdict import Score, Word

#: A score at or above this counts as the theory itself; settable.
THRESHOLD = defaults.THRESHOLD
#: With a larger share of heads rejected a measure decides nothing.
REJECTED_SHARE = 0.05


def word_of_score(score: Score, threshold: float = THRESHOLD) -> Word:
    """The rule for one measure scored between references."""
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


def word_of_gain(interval: tuple[float, float] | None, smallest: float) -> Word:
    """The rule for a claimed gain: `smallest` is the smallest gain of interest, and no interval decides nothing."""
    if interval is None:
        return Word.INCONCLUSIVE
    low, high = interval
    if low > 0:
        return Word.SUPPORTED
    if high < 0:
        return Word.REFUTED
    return Word.INDISTINGUISHABLE if high < smallest else Word.INCONCLUSIVE


def combined_word(words: Sequence[Word]) -> Word:
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


def word_if_all_hold(words: Sequence[Word]) -> Word:
    """The rule for a claim of which every part must hold: a part that was not measured leaves it open.

    One part that fails refutes the claim, whatever is unknown about the others.
    """
    word = combined_word(words)
    unknown = [part for part in words if part in (Word.NOT_MEASURABLE, Word.NOT_IDENTIFIABLE)]
    if not unknown:
        return word
    return Word.REFUTED if word in (Word.REFUTED, Word.INDISTINGUISHABLE) else unknown[0]
