"""RPC-Attention is more robust than the symmetric attention that it replaces."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit.claims.claim import Claim, Terms
from attnaudit.claims.meanings import RecordKind
from attnaudit.records.evaluated_networks import Evaluation
from attnaudit.records.verdict import Verdict
from attnaudit.robustness.gains import DIFFERENCES, RULE, PairedComparison, pursuit_comparisons
from attnaudit.statistics.decisions import decide_gains


def _comparisons(evaluations: Sequence[Evaluation]) -> list[PairedComparison]:
    return pursuit_comparisons(evaluations, lambda baseline: baseline.classifies_images)


def _judge(evaluations: Sequence[Evaluation], terms: Terms) -> list[Verdict]:
    return [_verdict(comparison, evaluations, terms.level) for comparison in _comparisons(evaluations)]


def _verdict(comparison: PairedComparison, evaluations: Sequence[Evaluation], level: float) -> Verdict:
    gains = comparison.gains(evaluations, level)
    decision = decide_gains([gain.decision for gain in gains])
    reason = "; ".join((*(gain.reason for gain in gains), comparison.clean(evaluations)))
    return Verdict(CLAIM.name, comparison.ours.name, *decision, f"points over {comparison.theirs.name}: {reason}")


CLAIM = Claim(
    name="rpc-robust",
    statement="RPC-Attention beats its symmetric baseline under corruption and under attack.",
    citation="Teo & Nguyen 2024, section 4: ahead of SymViT under all attacks and on ImageNet-C, -A, -R and -O",
    formula="L of K = L + S after n steps with L = softmax(ZZᵀ/√d) V, against softmax(KKᵀ/√d) V",
    rule=(
        "Supported if there is a gain under corruption and under attack, refuted if one of them is absent or a loss, "
        f"and undecided otherwise. {RULE}"
    ),
    decided_by=("difference in accuracy under corruption", "difference in accuracy under attack"),
    shown=("difference in accuracy on clean images",),
    reads=(RecordKind.EVALUATION,),
    needs="an evaluation of networks with attention: rpc and attention: symmetric by one recipe, two seeds of each",
    decide=_judge,
    intervals=lambda evaluations: DIFFERENCES * len(_comparisons(evaluations)),
)
