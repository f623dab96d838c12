"""RPC-Attention holds better than the symmetric attention that it is put into."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit.claims.robust_gains import KINDS, RULE, Contest, every
from attnaudit.claims.robust_groups import settings
from attnaudit.claims.robustness import RobustnessClaim
from attnaudit.records.evaluated_networks import Evaluation
from attnaudit.records.verdict import Verdict
from attnaudit.statistics.intervals import widened_level


def _judge(evaluations: Sequence[Evaluation]) -> list[Verdict]:
    """Every RPC-Attention of more than one iteration against symmetric attention."""
    contests = [
        Contest(ours, baseline, baseline)
        for groups in settings(evaluations)
        for baseline in groups
        if baseline.choice.is_plain_symmetric
        for ours in groups
        if ours.choice.pursues
    ]
    level = widened_level(KINDS * len(contests))
    return [_verdict(contest, evaluations, level) for contest in contests]


def _verdict(contest: Contest, evaluations: Sequence[Evaluation], level: float) -> Verdict:
    gains = contest.gains(evaluations, level)
    reason = "; ".join((*(gain.reason for gain in gains), contest.clean(evaluations)))
    return Verdict(CLAIM.name, contest.ours.name, every(gains), f"points over {contest.theirs.name}: {reason}")


CLAIM = RobustnessClaim(
    name="rpc-robust",
    statement="RPC-Attention beats its symmetric baseline under corruption and under attack.",
    citation="Teo & Nguyen 2024, section 4: ahead of SymViT under all attacks and on ImageNet-C, -A, -R and -O",
    formula="L of K = L + S after n steps with L = softmax(ZZᵀ/√d) V, against softmax(KKᵀ/√d) V",
    rule=(
        "Supported if there is a gain under corruption and under attack, indistinguishable if there is none under "
        f"both, and else refuted if either is none or a loss. {RULE}"
    ),
    deciding=(),
    judge=_judge,
    needs="an evaluation of networks with attention: rpc and attention: symmetric by one recipe, two seeds of each",
)
