"""RPC-Attention in the backbone segments better than the symmetric attention that it replaces."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit.claims.claim import Claim, Terms
from attnaudit.claims.meanings import RecordKind
from attnaudit.records.evaluated_networks import Evaluation
from attnaudit.records.verdict import Verdict
from attnaudit.robustness.gains import DIFFERENCES, GAIN_RULE, PairedComparison, pursuit_comparisons
from attnaudit.statistics.decisions import decide_gains


def _comparisons(evaluations: Sequence[Evaluation]) -> list[PairedComparison]:
    return pursuit_comparisons(evaluations, lambda baseline: baseline.segments)


def _judge(evaluations: Sequence[Evaluation], terms: Terms) -> list[Verdict]:
    return [_verdict(comparison, evaluations, terms.level) for comparison in _comparisons(evaluations)]


def _verdict(comparison: PairedComparison, evaluations: Sequence[Evaluation], level: float) -> Verdict:
    gains = comparison.gains_without_attack(evaluations, level)
    decision = decide_gains([gain.decision for gain in gains])
    reason = "; ".join(gain.reason for gain in gains)
    return Verdict(
        CLAIM.name, comparison.ours.name, *decision, f"points of mIoU over {comparison.theirs.name}: {reason}"
    )


CLAIM = Claim(
    name="rpc-segments-better",
    statement="RPC-Attention in the backbone segments clean and corrupted pictures better than symmetric attention.",
    citation="Teo & Nguyen 2024, Table 6: Segmenter on ADE20K, clean and under the 15 corruptions, by mIoU",
    formula="mIoU: the mean over classes of n_ii / (t_i + p_i - n_ii) for n_ij pixels of class i said to be of class j",
    rule=(
        "Supported if there is a gain in mIoU on clean pictures and under corruption, refuted if one of them is absent "
        f"or a loss, and undecided otherwise. {GAIN_RULE.format(number='mIoU', examples='pictures')} Corruption: the "
        "mean over all corruptions and severities, against the masks of the clean pictures."
    ),
    decided_by=("difference in mIoU on clean pictures", "difference in mIoU under corruption"),
    limits="Small networks from scratch on small pictures: the paper's are pretrained on ImageNet, and larger.",
    reads=(RecordKind.EVALUATION,),
    needs="an evaluation of networks that segment with attention: rpc and attention: symmetric, two seeds of each",
    decide=_judge,
    intervals=lambda evaluations: DIFFERENCES * len(_comparisons(evaluations)),
)
