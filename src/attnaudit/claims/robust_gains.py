"""What one attention gains over another under corruption and under attack: paired by seed, on the same images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnaudit.claims.robust_groups import Group
from attnaudit.claims.robust_shared import Shared, clean
from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation
from attnaudit.records.evaluation import ConditionKind
from attnaudit.records.verdict import Word
from attnaudit.statistics.decisions import combined_word
from attnaudit.statistics.intervals import Numbers, student_interval

#: A gain below this is none: the paper speaks of gains of one point and more.
SMALLEST_GAIN = 0.01
#: Where a baseline's accuracy must lie for an attack to tell networks apart.
_BAND = (0.1, 0.6)
#: Corruption and attack.
KINDS = 2
#: How gains are measured, in the words of a claim's rule.
RULE = (
    "A gain is a difference of accuracies to networks of the same size, training and seed on the same images, "
    "whose draw the intervals do not cover; Student's t over seeds, widened for all differences of the claim. It is "
    "one above 0, and none if the interval holds 0 and excludes 1 point. Corruption: the mean over all corruptions "
    "and severities. Attack: at the ε where the symmetric baseline keeps nearest to half of its clean accuracy (and "
    "10 to 60 %), each network under the attack that leaves it least; no gain counts while a network that has it "
    "fails a check for gradient masking, or was not checked, and no lack of one while a network that it is held "
    "against does."
)


@dataclass(frozen=True)
class Gain:
    """What one kind of condition says: a word, and the numbers behind it."""

    word: Word
    reason: str


@dataclass(frozen=True)
class Contest:
    """Ours against theirs; `baseline` says at which ε."""

    ours: Group
    theirs: Group
    baseline: Group

    def gains(self, evaluations: Sequence[Evaluation], level: float) -> tuple[Gain, Gain]:
        """Under corruption, and under attack."""
        return self._under_corruption(evaluations, level), self._under_attack(evaluations, level)

    def clean(self, evaluations: Sequence[Evaluation]) -> str:
        """The mean gain on clean images in words, to be shown beside."""
        shared = Shared.of([self.ours, self.theirs], ConditionKind.CLEAN, evaluations)
        return "clean not run" if shared is None else f"clean {_points(shared.gains(clean).mean())}"

    def _under_corruption(self, evaluations: Sequence[Evaluation], level: float) -> Gain:
        shared = Shared.of([self.ours, self.theirs], ConditionKind.CORRUPTION, evaluations)
        if shared is None:
            return Gain(Word.NOT_MEASURABLE, "no corruption was run on both")
        words = f"{len({key.name for key in shared.keys})} corruptions"
        return _gain(shared.gains(shared.corrupted), shared.coarseness, words, level)

    def _under_attack(self, evaluations: Sequence[Evaluation], level: float) -> Gain:
        shared = Shared.of([self.ours, self.theirs, self.baseline], ConditionKind.ATTACK, evaluations)
        if shared is None:
            return Gain(Word.NOT_MEASURABLE, "no attack by gradients was run on both and the baseline")
        base = shared.networks[2]
        half = float(np.mean([clean(network) for network in base])) / 2
        left = {e: float(np.mean([shared.attacked(network, e) for network in base])) for e in shared.strengths}
        chosen = min(left, key=lambda epsilon: abs(left[epsilon] - half))
        words = f"attack at ε = {255 * chosen:.3g}/255 (the baseline keeps {left[chosen]:.1%})"
        if not _BAND[0] <= left[chosen] <= _BAND[1]:
            return Gain(Word.NOT_IDENTIFIABLE, f"{words} tells nothing apart")
        gains = shared.gains(lambda network: shared.attacked(network, chosen))
        return _doubted(_gain(gains, shared.coarseness, words, level), *shared.networks[:2])


def every(gains: Sequence[Gain]) -> Word:
    """The word for a claim of which every part must hold: what was not measured is not taken for granted.

    One part that does not hold is enough to refute it, whatever is not known of the others.
    """
    word = combined_word([gain.word for gain in gains])
    unknown = [gain.word for gain in gains if gain.word in (Word.NOT_MEASURABLE, Word.NOT_IDENTIFIABLE)]
    if not unknown:
        return word
    return Word.REFUTED if word in (Word.REFUTED, Word.INDISTINGUISHABLE) else unknown[0]


def _doubted(gain: Gain, ours: Sequence[EvaluatedNetwork], theirs: Sequence[EvaluatedNetwork]) -> Gain:
    """With what speaks against the attacks.

    One that fails for want of a gradient leaves too much: if it is ours, there may be less of a gain, and if it is
    theirs, more.
    """
    about_ours, about_theirs = _doubts("its networks", ours), _doubts("the networks it is held against", theirs)
    if not (doubts := about_ours + about_theirs):
        return gain
    believed = not (about_ours if gain.word is Word.SUPPORTED else about_theirs)
    return Gain(gain.word if believed else Word.INCONCLUSIVE, f"{gain.reason}, though {' and '.join(doubts)}")


def _doubts(whose: str, networks: Sequence[EvaluatedNetwork]) -> list[str]:
    masked = sum(bool(network.masked) for network in networks)
    unchecked = sum(not network.checked for network in networks)
    doubts = [f"{masked} of {whose} fail a check for gradient masking"] if masked else []
    return doubts + ([f"{unchecked} of {whose} were not checked for gradient masking"] if unchecked else [])


def _gain(gains: Numbers, coarseness: float, words: str, level: float) -> Gain:
    interval = student_interval(gains, level, coarseness)
    if interval is None:
        return Gain(Word.INCONCLUSIVE, f"{words}: {_points(gains.mean())} on one seed, and two at least are needed")
    low, high = interval
    reason = f"{words}: {_points(gains.mean())} [{_points(low)}, {_points(high)}] on {len(gains)} seeds"
    if low > 0:
        return Gain(Word.SUPPORTED, reason)
    if high < 0:
        return Gain(Word.REFUTED, reason)
    return Gain(Word.INDISTINGUISHABLE if high < SMALLEST_GAIN else Word.INCONCLUSIVE, reason)


def _points(gain: float) -> str:
    return f"{round(100 * gain, 2) + 0.0:+.2f}"  # no "-0.00"
