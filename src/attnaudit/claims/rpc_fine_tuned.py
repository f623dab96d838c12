"""RPC-Attention, put into a pretrained encoder at fine-tuning only, classifies sentences better."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit.claims.claim import Claim, Terms
from attnaudit.claims.meanings import RecordKind
from attnaudit.records.evaluated_networks import Evaluation
from attnaudit.records.evaluation import ConditionKind
from attnaudit.records.verdict import Verdict
from attnaudit.robustness.gains import DIFFERENCES, GAIN_RULE, PairedComparison
from attnaudit.robustness.network_groups import NetworkGroup, comparable_groups
from attnaudit.statistics.decisions import decide_gains


def _comparisons(evaluations: Sequence[Evaluation]) -> list[PairedComparison]:
    """Every RPC-Attention of more than one iteration in an encoder against the attention that it replaces."""
    return [
        PairedComparison(ours, theirs, theirs)
        for groups in comparable_groups(evaluations)
        for ours in groups
        for theirs in groups
        if ours.reads_sentences and _replaces(ours, theirs)
    ]


def _replaces(ours: NetworkGroup, theirs: NetworkGroup) -> bool:
    """The form with queries of its own replaces softmax attention, the other one symmetric attention."""
    if ours.attention.is_asymmetric_rpc:
        return theirs.attention.is_softmax
    return ours.attention.is_iterated_rpc and theirs.attention.is_plain_symmetric


def _judge(evaluations: Sequence[Evaluation], terms: Terms) -> list[Verdict]:
    return [_verdict(comparison, evaluations, terms.level) for comparison in _comparisons(evaluations)]


def _verdict(comparison: PairedComparison, evaluations: Sequence[Evaluation], level: float) -> Verdict:
    gains = comparison.gains_without_attack(evaluations, level, ConditionKind.NOISE)
    decision = decide_gains([gain.decision for gain in gains])
    reason = "; ".join(gain.reason for gain in gains)
    return Verdict(CLAIM.name, comparison.ours.name, *decision, f"points over {comparison.theirs.name}: {reason}")


CLAIM = Claim(
    name="rpc-fine-tuned",
    statement="RPC-Attention at fine-tuning only improves sentence classification, clean and under noise.",
    citation="Teo & Nguyen 2024, appendix E, Tables 11 and 12 (SST-2, IMDB, SST-5); E.10 for the asymmetric form",
    formula="L of K = L + S after n steps with L = softmax(QZᵀ/√d) V or softmax(ZZᵀ/√d) V, against the same with Z = K",
    rule=(
        "Supported if there is a gain on clean sentences and under noise, refuted if one of them is absent or a loss, "
        "and undecided otherwise. RPC-Attention with queries of its own is held against softmax attention, without "
        f"against symmetric attention. {GAIN_RULE.format(number='accuracy', examples='sentences')} "
        "Noise: the mean over all noises and "
        "rates."
    ),
    decided_by=("difference in accuracy on clean sentences", "difference in accuracy under noise"),
    reads=(RecordKind.EVALUATION,),
    needs="an evaluation of encoders fine-tuned with attention: rpc and with what it replaces, two seeds of each",
    decide=_judge,
    intervals=lambda evaluations: DIFFERENCES * len(_comparisons(evaluations)),
)
