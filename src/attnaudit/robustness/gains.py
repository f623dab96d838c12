"""What one attention gains over another under corruption, attack or noise: paired by seed, on the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attnaudit.display import counted
from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation
from attnaudit.records.evaluation import ConditionKind
from attnaudit.records.verdict import Finding, VerdictWord
from attnaudit.robustness.network_groups import NetworkGroup, comparable_groups
from attnaudit.robustness.shared_conditions import SharedConditions, clean_accuracy
from attnaudit.statistics.decisions import Decision, decide_gain
from attnaudit.statistics.intervals import student_interval

#: The smallest gain of interest: the paper speaks of over 1 % on clean images.
SMALLEST_GAIN = 0.01
#: Range of the baseline's accuracy in which an attack can separate networks.
_BASELINE_RANGE = (0.1, 0.6)
#: How far above chance, on the way to 1, the baseline must be for a gain to be absent.
_LEARNED = 0.1
_NOT_MEASURED = (VerdictWord.UNDECIDED, Finding.NOT_MEASURED)
#: Differences of one comparison: under corruption and under attack, or clean and under noise.
DIFFERENCES = 2
#: How gains are measured, in the words of a claim's rule.
GAIN_RULE = (
    "A gain is a difference in {number} between networks of the same size, training and seed on the same {examples}; "
    "Student's t over seeds, widened for all differences of the claim (the choice of {examples} is not covered). A "
    "gain is shown if the interval lies above 0, and absent if the interval contains 0 and excludes 1 point. Of "
    "several evaluations on other {examples}, that of most seeds counts, then that of most {examples}; where several "
    "have as many and say different things, the claim is undecided. A gain is not called absent where the networks "
    "compared with are less than a tenth of the way from chance (1 / classes) to 1."
)
RULE = (
    f"{GAIN_RULE.format(number='accuracy', examples='images')} "
    "Corruption: the mean over all corruptions and severities. Attack: of the "
    "ε at which the symmetric baseline keeps between 10 and 60 %, that at which it keeps closest to half of its clean "
    "accuracy, each network under the strongest of the attacks that all had, AutoAttack included if it is one of them; "
    "of evaluations of as many seeds, one with AutoAttack counts. A gain under attack does not count if one of the "
    "networks that have it fails a check for gradient masking or was not checked; its absence does not count if one of "
    "the networks compared with fails or was not checked."
)


@dataclass(frozen=True)
class Gain:
    """What one kind of condition says: a decision, and the numbers behind it."""

    decision: Decision
    reason: str

    @property
    def is_shown(self) -> bool:
        """Whether there is one."""
        return self.decision[0] is VerdictWord.SUPPORTED


@dataclass(frozen=True)
class PairedComparison:
    """Two groups of networks, paired by seed; the accuracy of `baseline` chooses the ε of attacks.

    Comparisons that answer one question together have the networks of the others `beside` them, so that all are of one
    evaluation, of the same seeds and conditions.
    """

    ours: NetworkGroup
    theirs: NetworkGroup
    baseline: NetworkGroup
    beside: tuple[NetworkGroup, ...] = ()

    def gains(self, evaluations: Sequence[Evaluation], level: float) -> tuple[Gain, Gain]:
        """Under corruption, and under attack."""
        return self._averaged(ConditionKind.CORRUPTION, evaluations, level), self._under_attack(evaluations, level)

    def gains_without_attack(
        self, evaluations: Sequence[Evaluation], level: float, kind: ConditionKind = ConditionKind.CORRUPTION
    ) -> tuple[Gain, Gain]:
        """On clean images or sentences, and under corruption or noise."""
        return self._on_clean(evaluations, level), self._averaged(kind, evaluations, level)

    def _on_clean(self, evaluations: Sequence[Evaluation], level: float) -> Gain:
        every = SharedConditions.all_of(self._groups, ConditionKind.CLEAN, evaluations)
        if not every:
            return Gain(_NOT_MEASURED, f"clean inputs were not shown to {self._everyone}")
        return _agreed([_above_chance(shared, clean_accuracy, "clean", level) for shared in every])

    def clean(self, evaluations: Sequence[Evaluation]) -> str:
        """The mean gain on clean images in words, to be shown beside."""
        shared = SharedConditions.of(self._groups, ConditionKind.CLEAN, evaluations)
        if shared is None:
            return "clean not run"
        inputs = f" ({shared.images:,} inputs)" if shared.passed_over else ""
        return f"clean {mean_in_points(shared.differences(clean_accuracy).mean())}{inputs}"

    def _averaged(self, kind: ConditionKind, evaluations: Sequence[Evaluation], level: float) -> Gain:
        """Under corruption, or under noise."""
        every = SharedConditions.all_of(self._groups, kind, evaluations)
        if not every:
            return Gain(_NOT_MEASURED, f"no {kind.value} was run on {self._everyone}")
        names = [{key.name for key in shared.keys} for shared in every]
        return _agreed(
            [
                _above_chance(shared, shared.averaged, counted(len(own), kind.value), level)
                for shared, own in zip(every, names, strict=True)
            ]
        )

    @property
    def _groups(self) -> list[NetworkGroup]:
        return [self.ours, self.theirs, *self.beside]

    @property
    def _everyone(self) -> str:
        return "all of these networks" if self.beside else "both"

    def _under_attack(self, evaluations: Sequence[Evaluation], level: float) -> Gain:
        groups = [self.ours, self.theirs, self.baseline, *self.beside]
        every = SharedConditions.all_of(groups, ConditionKind.ATTACK, evaluations)
        if not every:
            return Gain(_NOT_MEASURED, "no attack by gradients was run on all of these networks")
        return _agreed([_under_attack(shared, level) for shared in every])


def pursuit_comparisons(
    evaluations: Sequence[Evaluation], chosen: Callable[[NetworkGroup], bool]
) -> list[PairedComparison]:
    """Every RPC-Attention of more than one iteration against the symmetric attention of a chosen group."""
    return [
        PairedComparison(ours, baseline, baseline)
        for groups in comparable_groups(evaluations)
        for baseline in groups
        if baseline.attention.is_plain_symmetric and chosen(baseline)
        for ours in groups
        if ours.attention.is_iterated_rpc
    ]


def _under_attack(shared: SharedConditions, level: float) -> Gain:
    """Of the first two groups, at an ε that the third, the baseline, chooses."""
    base = shared.networks[2]
    half = float(np.mean([clean_accuracy(network) for network in base])) / 2
    left = {e: float(np.mean([shared.attacked(network, e) for network in base])) for e in shared.strengths}
    telling = [epsilon for epsilon in left if _BASELINE_RANGE[0] <= left[epsilon] <= _BASELINE_RANGE[1]]
    chosen = min(telling or left, key=lambda epsilon: abs(left[epsilon] - half))
    how = ", AutoAttack included" if shared.by_autoattack(chosen) else ""
    words = f"attack at ε = {255 * chosen:.3g}/255{how} (the baseline keeps {left[chosen]:.1%})"
    if not telling:
        return Gain((VerdictWord.UNDECIDED, Finding.NOT_IDENTIFIABLE), f"{words} tells nothing apart")
    gain = _gain(shared, lambda network: shared.attacked(network, chosen), words, level)
    return _with_masking_checks(gain, *shared.networks[:2])


def _above_chance(
    shared: SharedConditions, accuracy: Callable[[EvaluatedNetwork], float], words: str, level: float
) -> Gain:
    """The gain; where it is not shown, undecided if the second group is so near chance that none could be.

    The mIoU of one class for all pixels is at most 1 / classes, too, of the classes that masks have.
    """
    gain, theirs = _gain(shared, accuracy, words, level), shared.networks[1]
    missing = max((entry.missing for entry in theirs[0].under(ConditionKind.CLEAN)), default=0)
    chance = 1 / max(1, theirs[0].architecture.classes - missing)
    kept = float(np.mean([accuracy(network) for network in theirs]))
    if gain.is_shown or kept >= chance + _LEARNED * (1 - chance):
        return gain
    reason = f"{gain.reason}, where the baseline has {kept:.1%}, too near chance ({chance:.1%}) to tell"
    return Gain((VerdictWord.UNDECIDED, Finding.NOT_IDENTIFIABLE), reason)


def _agreed(gains: Sequence[Gain]) -> Gain:
    """The first of several evaluations that count alike, unless another one says something else."""
    first, *others = gains
    if all(gain.decision == first.decision for gain in others):
        return first
    reasons = ", but ".join(dict.fromkeys(gain.reason for gain in gains))
    return Gain((VerdictWord.UNDECIDED, Finding.MEASURES_DISAGREE), reasons)


def _with_masking_checks(gain: Gain, ours: Sequence[EvaluatedNetwork], theirs: Sequence[EvaluatedNetwork]) -> Gain:
    """The gain, unless the attacks cannot be trusted.

    An attack that lacks a useful gradient leaves too much accuracy: of our networks, so that the gain may be smaller
    than it looks, or of theirs, so that it may be larger.
    """
    about_ours, about_theirs = _doubts("its networks", ours), _doubts("the networks it is held against", theirs)
    if not (doubts := about_ours + about_theirs):
        return gain
    trusted = not (about_ours if gain.is_shown else about_theirs)
    decision = gain.decision if trusted else (VerdictWord.UNDECIDED, Finding.TOO_WIDE)
    return Gain(decision, f"{gain.reason}, though {' and '.join(doubts)}")


def _doubts(whose: str, networks: Sequence[EvaluatedNetwork]) -> list[str]:
    masked = sum(bool(network.masked) for network in networks)
    unchecked = sum(not network.checked for network in networks)
    fail, were = "fails" if masked == 1 else "fail", "was" if unchecked == 1 else "were"
    doubts = [f"{masked} of {whose} {fail} a check for gradient masking"] if masked else []
    return doubts + ([f"{unchecked} of {whose} {were} not checked for gradient masking"] if unchecked else [])


def _gain(shared: SharedConditions, accuracy: Callable[[EvaluatedNetwork], float], words: str, level: float) -> Gain:
    differences = shared.differences(accuracy)
    interval = student_interval(differences, level, shared.coarseness)
    mean = f"{words}: {mean_in_points(differences.mean())}"
    if interval is None:
        lacks = "one seed{}, and two at least are needed" if len(differences) < 2 else "every seed{}, without a spread"
        return Gain(decide_gain(None, SMALLEST_GAIN), f"{mean} on {lacks.format(shared.origin)}")
    low, high = interval
    reason = f"{mean} [{end_in_points(low)}, {end_in_points(high)}] on {len(differences)} seeds{shared.origin}"
    return Gain(decide_gain(interval, SMALLEST_GAIN), reason)


def mean_in_points(gain: float) -> str:
    """A mean gain as it is printed; one too small to be shown has no sign of a loss."""
    return f"{round(100 * gain, 2) + 0.0:+.2f}"


def end_in_points(gain: float) -> str:
    """The end of an interval, which shows on which side of 0 it is, as -0.00 below it and +0.00 not."""
    return f"{round(100 * gain, 9) + 0.0:+.2f}"
