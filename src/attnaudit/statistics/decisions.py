"""From scores and differences to a word and a finding.

A claim with several deciding measures is supported if all of them support it, and refuted if one of them refutes it.
Intervals hold for all measures of a claim jointly (Bonferroni, which is the first step of Holm's procedure), whatever
else was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit import defaults
from attnaudit.records.verdict import Finding, Score, VerdictWord

Decision = tuple[VerdictWord, Finding]

#: A score at or above this counts as the theory itself, and one up to CHANCE as chance; both can be set.
THRESHOLD = defaults.THRESHOLD
CHANCE = defaults.CHANCE
#: Fewer independent inputs decide nothing.
LEAST_INPUTS = 8
#: With a larger share of rows rejected a measure decides nothing.
REJECTED_SHARE = 0.05
#: A measure decides only if planted values with this share of noise still count as the theory.
TOLERANCE = 0.05
#: If not even the best projection reaches this score, no network can have it.
REACHABLE = 0.2

#: Findings of measures that have nothing to say, the most telling one first.
_SILENT = (Finding.TOO_FEW_INPUTS, Finding.NOT_IDENTIFIABLE, Finding.NOT_MEASURED)
#: Refutations that hold whatever other measures say, the strongest first.
_IMPOSSIBLE = (Finding.IMPOSSIBLE, Finding.UNREALISABLE)


def decide_score(
    score: Score, threshold: float = THRESHOLD, chance: float = CHANCE, *, least: int = LEAST_INPUTS
) -> Decision:
    """The rule for one measure scored between null and theory; heads that a theorem excludes need no number."""
    if _all_impossible(score):
        return VerdictWord.REFUTED, Finding.IMPOSSIBLE
    if (silent := _silent(score, least)) is not None:
        return VerdictWord.UNDECIDED, silent
    assert score.score is not None
    assert score.score.interval is not None
    low, high = score.score.interval
    if low >= threshold:
        return VerdictWord.SUPPORTED, Finding.ON_AVERAGE
    if high >= threshold:
        return VerdictWord.UNDECIDED, Finding.TOO_WIDE
    if _unrealisable(score):
        return VerdictWord.REFUTED, Finding.UNREALISABLE
    if low > chance:
        return VerdictWord.REFUTED, Finding.PARTIAL
    return VerdictWord.REFUTED, Finding.BELOW_CHANCE if high < -chance else Finding.AT_CHANCE


def _all_impossible(score: Score) -> bool:
    """Whether a theorem excludes every head, and none of them merely has no number."""
    others = score.unidentifiable + score.uninformative + score.rejected
    return bool(score.impossible) and score.score is None and not others


def _silent(score: Score, least: int) -> Finding | None:
    """Why a measure decides nothing; None if it does."""
    if score.score is None:
        return Finding.NOT_IDENTIFIABLE if score.unidentifiable or score.uninformative else Finding.NOT_MEASURED
    if score.rejected > REJECTED_SHARE * (score.rejected + score.informative):
        return Finding.NOT_MEASURED
    if score.tolerance is not None and score.tolerance < TOLERANCE:
        return Finding.NOT_IDENTIFIABLE
    return Finding.TOO_FEW_INPUTS if score.inputs < least or score.score.interval is None else None


def _unrealisable(score: Score) -> bool:
    """Whether even the upper confidence limit of the best fit to its own inputs is out of reach."""
    best = score.fitted_reach
    return best is not None and best.interval is not None and best.interval[1] < REACHABLE


def decides(score: Score, least: int = LEAST_INPUTS) -> bool:
    """Whether a measure has anything to say."""
    return _silent(score, least) is None


def combine(decisions: Sequence[Decision]) -> Decision:
    """What several measures of a claim come to; those that have nothing to say do not count."""
    deciding = [own for own in decisions if own[1] not in _SILENT]
    if not deciding:
        found = {finding for _, finding in decisions}
        return VerdictWord.UNDECIDED, next((own for own in _SILENT if own in found), Finding.NOT_MEASURED)
    words = {word for word, _ in deciding}
    if words == {VerdictWord.SUPPORTED}:
        return deciding[0]
    if VerdictWord.REFUTED in words:
        found = {finding for word, finding in deciding if word is VerdictWord.REFUTED}
        excluded = next((own for own in _IMPOSSIBLE if own in found), None)
        # A claim is off chance, to either side, only if no measure says that it is not.
        return VerdictWord.REFUTED, excluded or (found.pop() if len(found) == 1 else Finding.AT_CHANCE)
    disagree = VerdictWord.SUPPORTED in words
    return VerdictWord.UNDECIDED, Finding.MEASURES_DISAGREE if disagree else Finding.TOO_WIDE


def decide_gain(interval: tuple[float, float] | None, smallest: float) -> Decision:
    """The rule for a claimed gain: shown, excluded (below the smallest gain of interest), or open."""
    if interval is None:
        return VerdictWord.UNDECIDED, Finding.TOO_FEW_INPUTS
    low, high = interval
    if low > 0:
        return VerdictWord.SUPPORTED, Finding.SHOWN
    if high < 0:
        return VerdictWord.REFUTED, Finding.LOSS
    return (VerdictWord.REFUTED, Finding.NO_GAIN) if high < smallest else (VerdictWord.UNDECIDED, Finding.TOO_WIDE)


def decide_gains(gains: Sequence[Decision]) -> Decision:
    """The rule for a claim of which every gain must hold: one that does not refutes it, whatever is open."""
    for word in (VerdictWord.REFUTED, VerdictWord.UNDECIDED):
        if found := [own for own in gains if own[0] is word]:
            return min(found, key=lambda own: own[1] is not Finding.LOSS)
    return gains[0] if gains else (VerdictWord.UNDECIDED, Finding.NOT_MEASURED)
