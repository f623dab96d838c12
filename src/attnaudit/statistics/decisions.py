"""From scores and differences to a word."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit import defaults
from attnaudit.records.verdict import Score, VerdictWord

#: A score at or above this counts as the theory itself; settable.
THRESHOLD = defaults.THRESHOLD
#: With a larger share of heads rejected a measure decides nothing.
REJECTED_SHARE = 0.05


def word_of_score(score: Score, threshold: float = THRESHOLD) -> VerdictWord:
    """The rule for one measure scored between references."""
    total = score.heads + score.rejected
    if total == 0:
        return VerdictWord.NOT_IDENTIFIABLE if score.unidentifiable else VerdictWord.NOT_MEASURABLE
    if score.rejected > REJECTED_SHARE * total:
        return VerdictWord.NOT_MEASURABLE
    if not score.has_power:
        return VerdictWord.NOT_IDENTIFIABLE
    if score.interval is None:
        return VerdictWord.INCONCLUSIVE
    low, high = score.interval
    if low >= threshold:
        return VerdictWord.SUPPORTED
    if low <= 0:
        return VerdictWord.INDISTINGUISHABLE if high < threshold else VerdictWord.INCONCLUSIVE
    return VerdictWord.REFUTED if high < threshold else VerdictWord.INCONCLUSIVE


def word_of_gain(interval: tuple[float, float] | None, smallest: float) -> VerdictWord:
    """The rule for a claimed gain: `smallest` is the smallest gain of interest, and no interval decides nothing."""
    if interval is None:
        return VerdictWord.INCONCLUSIVE
    low, high = interval
    if low > 0:
        return VerdictWord.SUPPORTED
    if high < 0:
        return VerdictWord.REFUTED
    return VerdictWord.INDISTINGUISHABLE if high < smallest else VerdictWord.INCONCLUSIVE


def combined_word(words: Sequence[VerdictWord]) -> VerdictWord:
    """The rule for several deciding measures; those without power or numbers do not decide."""
    deciding = [word for word in words if word not in (VerdictWord.NOT_IDENTIFIABLE, VerdictWord.NOT_MEASURABLE)]
    if not deciding:
        return VerdictWord.NOT_MEASURABLE if VerdictWord.NOT_MEASURABLE in words else VerdictWord.NOT_IDENTIFIABLE
    if all(word is VerdictWord.SUPPORTED for word in deciding):
        return VerdictWord.SUPPORTED
    if all(word is VerdictWord.INDISTINGUISHABLE for word in deciding):
        return VerdictWord.INDISTINGUISHABLE
    if VerdictWord.REFUTED in deciding or VerdictWord.INDISTINGUISHABLE in deciding:
        return VerdictWord.REFUTED
    return VerdictWord.INCONCLUSIVE


def word_if_all_hold(words: Sequence[VerdictWord]) -> VerdictWord:
    """The rule for a claim of which every part must hold: a part that was not measured leaves it open.

    One part that fails refutes the claim, whatever is unknown about the others.
    """
    word = combined_word(words)
    unknown = [part for part in words if part in (VerdictWord.NOT_MEASURABLE, VerdictWord.NOT_IDENTIFIABLE)]
    if not unknown:
        return word
    return VerdictWord.REFUTED if word in (VerdictWord.REFUTED, VerdictWord.INDISTINGUISHABLE) else unknown[0]
