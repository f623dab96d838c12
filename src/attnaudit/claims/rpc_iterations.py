"""RPC-Attention is more robust the more iterations of its pursuit it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from attnaudit.attention.resolved import ResolvedAttention
from attnaudit.claims.claim import Claim, Terms
from attnaudit.claims.meanings import RecordKind
from attnaudit.records.evaluated_networks import Evaluation
from attnaudit.records.verdict import Verdict
from attnaudit.robustness.gains import DIFFERENCES, RULE, PairedComparison
from attnaudit.robustness.network_groups import NetworkGroup, comparable_groups
from attnaudit.statistics.decisions import decide_gains


def _comparisons(evaluations: Sequence[Evaluation]) -> list[PairedComparison]:
    """Every RPC-Attention against the one with the next fewer iterations, all else equal."""
    return [
        PairedComparison(more, fewer, _baseline(groups) or family[0])
        for groups in comparable_groups(evaluations)
        for family in _families(groups)
        for fewer, more in pairwise(family)
    ]


def _families(groups: Sequence[NetworkGroup]) -> Iterator[list[NetworkGroup]]:
    """RPC-Attention of images with one set of rules, λ and layers, by its number of iterations."""
    found: dict[ResolvedAttention, list[NetworkGroup]] = {}
    for group in groups:
        own = group.attention
        if own.pursuit is not None and own.pursuit.sparse == "outliers" and group.classifies_images:
            found.setdefault(replace(own, pursuit=replace(own.pursuit, iterations=1)), []).append(group)
    for family in found.values():
        yield sorted(family, key=_iterations)


def _iterations(group: NetworkGroup) -> int:
    assert group.attention.pursuit is not None
    return group.attention.pursuit.iterations


def _baseline(groups: Sequence[NetworkGroup]) -> NetworkGroup | None:
    return next((group for group in groups if group.attention.is_plain_symmetric), None)


def _judge(evaluations: Sequence[Evaluation], terms: Terms) -> list[Verdict]:
    return [_verdict(comparison, evaluations, terms.level) for comparison in _comparisons(evaluations)]


def _verdict(comparison: PairedComparison, evaluations: Sequence[Evaluation], level: float) -> Verdict:
    gains = comparison.gains(evaluations, level)
    more, fewer = _iterations(comparison.ours), _iterations(comparison.theirs)
    reason = "; ".join((*(gain.reason for gain in gains), comparison.clean(evaluations)))
    words = f"{more} over {fewer} ({comparison.theirs.name}), points: {reason}"
    return Verdict(CLAIM.name, comparison.ours.name, *decide_gains([gain.decision for gain in gains]), words)


CLAIM = Claim(
    name="rpc-iterations",
    statement="RPC-Attention is more robust with more iterations.",
    citation="implied by Teo & Nguyen 2024, Tables 1, 2 and 5: four, five and six iterations, and the gains quoted are "
    "those of six",
    formula="L of K = L + S after n steps with L = softmax(ZZᵀ/√d) V, against the same after fewer steps",
    rule=(
        "RPC-Attention is held against the one with the next fewer iterations and the same rules, λ and layers. "
        "Supported if there is a gain under corruption and under attack, refuted if one of them is absent or a loss, "
        f"and undecided otherwise. {RULE} Without symmetric networks, those of the fewest iterations choose the ε."
    ),
    decided_by=("difference in accuracy under corruption", "difference in accuracy under attack"),
    shown=("difference in accuracy on clean images",),
    limits="It is about neighbouring numbers of iterations: each step must gain.",
    reads=(RecordKind.EVALUATION,),
    needs="an evaluation of networks with attention: rpc and different iterations by one recipe, two seeds of each",
    decide=_judge,
    intervals=lambda evaluations: DIFFERENCES * len(_comparisons(evaluations)),
)
