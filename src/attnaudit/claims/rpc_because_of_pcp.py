"""What RPC-Attention gains, it gains by its steps of principal component pursuit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnaudit.claims.robust_gains import KINDS, RULE, Contest, Gain, every
from attnaudit.claims.robust_groups import Choice, Group, settings
from attnaudit.claims.robustness import RobustnessClaim
from attnaudit.records.evaluated_networks import Evaluation
from attnaudit.records.verdict import Verdict, Word
from attnaudit.statistics.intervals import widened_level

#: A sparse part with fewer entries than this is empty, and where it lies makes no difference.
_EMPTY = 0.001


@dataclass(frozen=True)
class _Trial:
    """RPC-Attention against symmetric attention, and against every control."""

    ours: Group
    baseline: Group
    controls: tuple[Group, ...]

    @property
    def contests(self) -> tuple[Contest, ...]:
        """The one that says whether there is a gain, and those that say why."""
        return tuple(Contest(self.ours, theirs, self.baseline) for theirs in (self.baseline, *self.controls))


def _judge(evaluations: Sequence[Evaluation]) -> list[Verdict]:
    """Every RPC-Attention of more than one iteration that has all of its controls."""
    trials = [
        _Trial(ours, baseline, tuple(controls))
        for groups in settings(evaluations)
        for baseline in groups
        if baseline.choice.is_plain_symmetric
        for ours in groups
        if ours.choice.pursues and (controls := _controls(ours, groups)) is not None
    ]
    level = widened_level(KINDS * sum(len(trial.contests) for trial in trials))
    return [_verdict(trial, evaluations, level) for trial in trials]


def _controls(ours: Group, groups: Sequence[Group]) -> list[Group] | None:
    """One iteration, a sparse part at random places, and a temperature, in the same layers; None if one is missing."""
    own = ours.choice
    assert own.rule is not None
    wanted = [replace(own, rule=replace(own.rule, **change)) for change in ({"iterations": 1}, {"sparse": "random"})]
    found = [next((group for group in groups if group.choice == choice), None) for choice in wanted]
    found.append(next((group for group in groups if _is_tempered(group.choice, own)), None))
    controls = [group for group in found if group is not None]
    return controls if len(controls) == len(found) else None


def _is_tempered(choice: Choice, own: Choice) -> bool:
    """Whether it is symmetric attention with a temperature in the layers that RPC-Attention has."""
    return choice.name == "symmetric" and choice.tempered and choice.layers == own.layers


def _verdict(trial: _Trial, evaluations: Sequence[Evaluation], level: float) -> Verdict:
    """What is to be explained are the gains over symmetric attention; each control must fall behind under the same."""
    first, *others = ((contest, contest.gains(evaluations, level)) for contest in trial.contests)
    explained = [place for place, gain in enumerate(first[1]) if gain.word is Word.SUPPORTED]
    reason = ". ".join(_sentence(contest, gains, evaluations) for contest, gains in (first, *others))
    if not explained:
        words = f"No gain to explain is shown. {reason}"
        return Verdict(CLAIM.name, trial.ours.name, Word.NOT_IDENTIFIABLE, words)
    deciding = [gains[place] for contest, gains in others if not _same(contest) for place in explained]
    if len(deciding) < len(explained) * len(others):
        reason = f"{reason}. The sparse part is empty, or not known not to be, so that its places decide nothing"
    return Verdict(CLAIM.name, trial.ours.name, every(deciding), reason)


def _same(contest: Contest) -> bool:
    """Whether a control with S at random places is what it is to be told apart from, since there is hardly any S."""
    rule = contest.theirs.choice.rule
    if rule is None or rule.sparse != "random":
        return False
    share = contest.ours.sparse_share
    return share is None or share < _EMPTY


def _sentence(contest: Contest, gains: Sequence[Gain], evaluations: Sequence[Evaluation]) -> str:
    parts = "; ".join((*(gain.reason for gain in gains), contest.clean(evaluations)))
    return f"Points over {contest.theirs.name}: {parts}"


CLAIM = RobustnessClaim(
    name="rpc-because-of-pcp",
    statement="The robustness that RPC-Attention gains needs its principal component pursuit iterations.",
    citation="Teo & Nguyen 2024, section 3.2, where the pursuit is what makes attention robust",
    formula="the gain over one iteration, over S at random places, over softmax(KKᵀ/(t√d)) V of the same entropy",
    rule=(
        "Where RPC-Attention gains over symmetric attention, under corruption or attack, it must gain over each of "
        "three controls too: one iteration, which only clips keys; a sparse part as dense at random places, unless "
        "there is none to speak of (0.1 % of its entries); symmetric attention at the temperature of the same entropy. "
        "Refuted if over one of them it gains nothing, indistinguishable if over none it gains anything, not "
        f"identifiable if no gain to explain is shown. {RULE}"
    ),
    deciding=(),
    judge=_judge,
    needs="an evaluation of RPC-Attention with its three controls and symmetric attention, two seeds of each",
)
