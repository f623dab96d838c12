"""What RPC-Attention gains, it gains by its steps of principal component pursuit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnaudit.claims.claim import Claim, Terms
from attnaudit.claims.meanings import RecordKind
from attnaudit.records.evaluated_networks import Evaluation
from attnaudit.records.verdict import Finding, Verdict, VerdictWord
from attnaudit.robustness.gains import DIFFERENCES, RULE, Gain, PairedComparison
from attnaudit.robustness.network_groups import NetworkGroup, comparable_groups
from attnaudit.statistics.decisions import Decision, decide_gains

#: A sparse part with fewer entries than this is empty, and its positions make no difference.
_EMPTY = 0.001
_UNKNOWN = (VerdictWord.UNDECIDED, Finding.NOT_MEASURED)


@dataclass(frozen=True)
class _Subject:
    """RPC-Attention with symmetric attention and every control to compare it with."""

    ours: NetworkGroup
    baseline: NetworkGroup
    controls: tuple[NetworkGroup, ...]

    @property
    def comparisons(self) -> tuple[PairedComparison, ...]:
        """The first says whether there is a gain, the others why: under the same conditions, in the same seeds."""
        others = (self.baseline, *self.controls)
        return tuple(PairedComparison(self.ours, theirs, self.baseline, others) for theirs in others)


def _subjects(evaluations: Sequence[Evaluation]) -> list[_Subject]:
    """Every RPC-Attention of more than one iteration that has all of its controls."""
    return [
        _Subject(ours, baseline, tuple(controls))
        for groups in comparable_groups(evaluations)
        for baseline in groups
        if baseline.attention.is_plain_symmetric and baseline.classifies_images
        for ours in groups
        if ours.attention.is_iterated_rpc and (controls := _controls(ours, baseline, groups)) is not None
    ]


def _controls(ours: NetworkGroup, baseline: NetworkGroup, groups: Sequence[NetworkGroup]) -> list[NetworkGroup] | None:
    """One iteration, a sparse part at random places, and a temperature, in the same layers; None if one is missing."""
    own = ours.attention
    assert own.pursuit is not None
    wanted = [
        replace(own, pursuit=replace(own.pursuit, **change)) for change in ({"iterations": 1}, {"sparse": "random"})
    ]
    found = [next((group for group in groups if group.attention == attention), None) for attention in wanted]
    found.append(_tempered(ours, baseline, groups))
    controls = [group for group in found if group is not None]
    return controls if len(controls) == len(found) else None


def _tempered(ours: NetworkGroup, baseline: NetworkGroup, groups: Sequence[NetworkGroup]) -> NetworkGroup | None:
    """The symmetric attention with a temperature in the layers of RPC-Attention that is nearest to it in entropy.

    Training moves entropy away from where the temperature put it. But what stays nearer to the baseline than to
    RPC-Attention, or has an entropy that is not known, is no control of it: such a network is made for another one.
    """
    layers = ours.attention.layers
    wanted, plain = ours.entropy(layers), baseline.entropy(layers)
    if wanted is None or plain is None:
        return None
    distances = []
    for group in groups:
        if group.attention.is_tempered_symmetric and group.attention.layers == layers:
            entropy = group.entropy(layers)
            if entropy is not None and abs(entropy - wanted) < abs(entropy - plain):
                distances.append((abs(entropy - wanted), group))
    return min(distances, key=lambda entry: entry[0])[1] if distances else None


def _count_intervals(evaluations: Sequence[Evaluation]) -> int:
    return DIFFERENCES * sum(len(subject.comparisons) for subject in _subjects(evaluations))


def _judge(evaluations: Sequence[Evaluation], terms: Terms) -> list[Verdict]:
    return [_verdict(subject, evaluations, terms.level) for subject in _subjects(evaluations)]


def _verdict(subject: _Subject, evaluations: Sequence[Evaluation], level: float) -> Verdict:
    """Gains over symmetric attention have to be explained; each control must fall behind under the same condition."""
    first, *others = ((comparison, comparison.gains(evaluations, level)) for comparison in subject.comparisons)
    explained = [place for place, gain in enumerate(first[1]) if gain.is_shown]
    reason = ". ".join(_sentence(comparison, gains, evaluations) for comparison, gains in (first, *others))
    if not explained:
        words = f"No gain to explain is shown. {reason}"
        return Verdict(CLAIM.name, subject.ours.name, VerdictWord.UNDECIDED, Finding.NOT_IDENTIFIABLE, words)
    deciding: list[Decision] = []
    share = subject.ours.sparse_share
    for comparison, gains in others:
        decisions = [gains[place].decision for place in explained]
        if not _has_random_places(comparison.theirs) or (share is not None and share >= _EMPTY):
            deciding += decisions
        elif share is not None:
            reason = f"{reason}. The sparse part is empty, so that its places decide nothing"
        else:
            reason = f"{reason}. It is not known how full the sparse part is, so its places cannot refute the claim"
            deciding += [_UNKNOWN if own[0] is VerdictWord.REFUTED else own for own in decisions]
    return Verdict(CLAIM.name, subject.ours.name, *decide_gains(deciding), reason)


def _has_random_places(group: NetworkGroup) -> bool:
    """Whether S is at random places, which makes no difference if S is nearly empty."""
    return group.attention.pursuit is not None and group.attention.pursuit.sparse == "random"


def _sentence(comparison: PairedComparison, gains: Sequence[Gain], evaluations: Sequence[Evaluation]) -> str:
    parts = "; ".join((*(gain.reason for gain in gains), comparison.clean(evaluations)))
    return f"Points over {comparison.theirs.name}: {parts}"


CLAIM = Claim(
    name="rpc-because-of-pcp",
    statement="The robustness that RPC-Attention gains needs its principal component pursuit iterations.",
    citation="Teo & Nguyen 2024, section 3.2, where the pursuit is what makes attention robust",
    formula="the gain over one iteration, over S at random places, over softmax(KKᵀ/(t√d)) V of the same entropy",
    rule=(
        "Where RPC-Attention gains over symmetric attention, under corruption or attack, it must gain over each of "
        "three controls too, in the same evaluation, seeds and conditions: one iteration, which only clips keys; a "
        "sparse part of the same density at random places, unless S is nearly empty (below 0.1 % of its entries; where "
        "that is not known, this control refutes nothing); symmetric attention with a temperature that brings its "
        "entropy, after training, closer to RPC-Attention's than to that of symmetric attention. Refuted if the gain "
        "over one of them is absent or a loss, undecided if no gain to explain is shown. "
        f"{RULE}"
    ),
    decided_by=(
        "difference in accuracy from each control under corruption",
        "difference in accuracy from each control under attack",
    ),
    shown=("difference in accuracy on clean images",),
    reads=(RecordKind.EVALUATION,),
    needs="an evaluation of RPC-Attention with its three controls and symmetric attention, two seeds of each",
    decide=_judge,
    intervals=_count_intervals,
)
