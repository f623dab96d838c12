"""What one attention gains over another under corruption and under attack: paired by seed, on the same pictures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from attnaudit.claims.robust_groups import Group
from attnaudit.claims.scores import Numbers, student_interval
from attnaudit.claims.verdict import Word, combine
from attnaudit.evidence.robustness_results import EvaluatedNetwork, Evaluation, Kind

#: A gain below this is none: the paper speaks of gains of one point and more.
SMALLEST_GAIN = 0.01
#: Where a baseline's accuracy must lie for an attack to tell networks apart.
_BAND = (0.1, 0.6)
#: Attacks are compared in this norm, which bounds the largest change of a pixel.
_NORM = "max"
#: How gains are measured, in the words of a claim's rule.
RULE = (
    "A gain is a difference of accuracies to networks of the same size, epochs and seed on the same pictures; "
    "Student's t over seeds, widened for all differences of the claim. It is one above 0, and none if the interval "
    "holds 0 and excludes 1 point. Corruption: the mean over all corruptions and severities. Attack: at the ε where "
    "the symmetric baseline keeps nearest to half of its clean accuracy (and 10 to 60 %), each network under the "
    "attack that leaves it least; no gain counts while a network that has it fails a check for gradient masking, or "
    "was not checked."
)

#: (name, strength) of a corruption or an attack.
Key = tuple[str, float]


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
        """The mean gain on clean pictures in words, to be shown beside."""
        shared = _Shared.of([self.ours, self.theirs], Kind.CLEAN, evaluations)
        return "clean not run" if shared is None else f"clean {_points(shared.gains(_clean).mean())}"

    def _under_corruption(self, evaluations: Sequence[Evaluation], level: float) -> Gain:
        shared = _Shared.of([self.ours, self.theirs], Kind.CORRUPTION, evaluations)
        if shared is None:
            return Gain(Word.NOT_MEASURABLE, "no corruption was run on both")

        def kept(network: EvaluatedNetwork) -> float:
            return float(np.mean(list(_accuracies(network, Kind.CORRUPTION, shared.keys).values())))

        return _gain(shared.gains(kept), f"{len({name for name, _ in shared.keys})} corruptions", level)

    def _under_attack(self, evaluations: Sequence[Evaluation], level: float) -> Gain:
        shared = _Shared.of([self.ours, self.theirs, self.baseline], Kind.ATTACK, evaluations)
        if shared is None:
            return Gain(Word.NOT_MEASURABLE, "no attack was run on both and the baseline")

        def kept(network: EvaluatedNetwork, epsilon: float) -> float:
            at = [key for key in shared.keys if key[1] == epsilon]
            return min(_accuracies(network, Kind.ATTACK, at).values())

        base = shared.networks[2]
        half = float(np.mean([_clean(network) for network in base])) / 2
        left = {epsilon: float(np.mean([kept(network, epsilon) for network in base])) for _, epsilon in shared.keys}
        chosen = min(sorted(left), key=lambda epsilon: abs(left[epsilon] - half))
        words = f"attack at ε = {255 * chosen:.3g}/255 (the baseline keeps {left[chosen]:.1%})"
        if not _BAND[0] <= left[chosen] <= _BAND[1]:
            return Gain(Word.NOT_IDENTIFIABLE, f"{words} tells nothing apart")
        gain = _gain(shared.gains(lambda network: kept(network, chosen)), words, level)
        masked = sum(bool(network.masked) for network in shared.networks[0])
        unchecked = sum(not network.checked for network in shared.networks[0])
        doubts = [f"{masked} of its networks fail a check for gradient masking"] if masked else []
        doubts += [f"{unchecked} of its networks were not checked for gradient masking"] if unchecked else []
        if not doubts:
            return gain
        word = Word.INCONCLUSIVE if gain.word is Word.SUPPORTED else gain.word
        return Gain(word, f"{gain.reason}, though {' and '.join(doubts)}")


def every(gains: Sequence[Gain]) -> Word:
    """The word for a claim of which every part must hold: what was not measured is not taken for granted."""
    word = combine([gain.word for gain in gains])
    unknown = [gain.word for gain in gains if gain.word in (Word.NOT_MEASURABLE, Word.NOT_IDENTIFIABLE)]
    return unknown[0] if unknown and word is not Word.REFUTED else word


@dataclass(frozen=True)
class _Shared:
    """What some groups have in common in one evaluation: networks of the same seeds, and conditions of a kind."""

    networks: tuple[tuple[EvaluatedNetwork, ...], ...]
    keys: frozenset[Key]

    @staticmethod
    def of(groups: Sequence[Group], kind: Kind, evaluations: Sequence[Evaluation]) -> _Shared | None:
        """In the evaluation with most seeds, and of these with most pictures; None if none has all groups."""
        found = []
        for place, evaluation in enumerate(evaluations):
            seeds = sorted(set.intersection(*(set(group.runs[place]) for group in groups)))
            networks = tuple(tuple(group.runs[place][seed] for seed in seeds) for group in groups)
            sets = [frozenset(_accuracies(network, kind)) for own in networks for network in own]
            if sets and (keys := frozenset.intersection(*sets)):
                found.append((len(seeds), evaluation.pictures, _Shared(networks, keys)))
        return max(found, key=lambda entry: entry[:2])[2] if found else None

    def gains(self, kept: Callable[[EvaluatedNetwork], float]) -> Numbers:
        """Of the first group over the second, by seed."""
        return np.array([kept(ours) - kept(theirs) for ours, theirs in zip(*self.networks[:2], strict=True)])


def _accuracies(network: EvaluatedNetwork, kind: Kind, keys: Collection[Key] | None = None) -> dict[Key, float]:
    """By condition; of attacks those in the norm that is compared."""
    found = {
        (held.name, held.strength): held.accuracy
        for held in network.under(kind)
        if kind is not Kind.ATTACK or held.norm == _NORM
    }
    return found if keys is None else {key: found[key] for key in keys}


def _clean(network: EvaluatedNetwork) -> float:
    return next(held.accuracy for held in network.under(Kind.CLEAN))


def _gain(gains: Numbers, words: str, level: float) -> Gain:
    interval = student_interval(gains, level)
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
    return f"{100 * gain:+.2f}"
