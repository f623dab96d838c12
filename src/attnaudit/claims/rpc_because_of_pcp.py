"""What RPC-Attention gains, it gains by its steps of principal component pursuit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnaudit.claims.claim import widened_level
from attnaudit.claims.robust_gains import RULE, Contest, every
from attnaudit.claims.robust_groups import Choice, Group, settings
from attnaudit.claims.robustness import RobustnessClaim
from attnaudit.claims.verdict import Verdict
from attnaudit.evidence.robustness_results import Evaluation

#: Corruption and attack.
_PARTS = 2


@dataclass(frozen=True)
class _Trial:
    """RPC-Attention against every control."""

    ours: Group
    contests: tuple[Contest, ...]


def _judge(evaluations: Sequence[Evaluation]) -> list[Verdict]:
    """Every RPC-Attention of more than one iteration that has all of its controls."""
    trials = [
        _Trial(ours, tuple(Contest(ours, control, baseline) for control in controls))
        for groups in settings(evaluations)
        for baseline in groups
        if baseline.choice.is_plain_symmetric
        for ours in groups
        if ours.choice.pursues and (controls := _controls(ours, groups)) is not None
    ]
    level = widened_level(_PARTS * sum(len(trial.contests) for trial in trials))
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
    found = [(contest, contest.gains(evaluations, level)) for contest in trial.contests]
    reason = ". ".join(
        f"Points over {contest.theirs.name}: "
        + "; ".join((*(gain.reason for gain in gains), contest.clean(evaluations)))
        for contest, gains in found
    )
    word = every([gain for _, gains in found for gain in gains])
    return Verdict(CLAIM.name, trial.ours.name, word, reason)


CLAIM = RobustnessClaim(
    name="rpc-because-of-pcp",
    statement="The robustness that RPC-Attention gains needs its principal component pursuit iterations.",
    citation="Teo & Nguyen 2024, section 3.2, where the pursuit is what makes attention robust",
    formula="the gain over one iteration, over S at random places, over softmax(KKᵀ/(t√d)) V of the same entropy",
    rule=(
        "Supported if RPC-Attention gains over each of three controls, under corruption and under attack: one "
        "iteration, which only clips keys; a sparse part as dense at random places; symmetric attention at the "
        f"temperature of the same entropy. Refuted if over one of them it gains nothing. {RULE}"
    ),
    deciding=(),
    judge=_judge,
    needs="an evaluation of RPC-Attention with its three controls and symmetric attention, two seeds of each",
)
