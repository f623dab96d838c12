"""RPC-Attention costs about as much as the symmetric attention that it replaces."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attnaudit.attention.resolved import ResolvedAttention
from attnaudit.claims.claim import Claim, Terms
from attnaudit.claims.meanings import RecordKind
from attnaudit.records import json_file
from attnaudit.records.architecture import ATTENTION_FIELDS, Architecture
from attnaudit.records.cost import CostTable, NetworkCost, PassCost
from attnaudit.records.verdict import Finding, Verdict, VerdictWord
from attnaudit.statistics.decisions import Decision
from attnaudit.statistics.intervals import student_interval

#: The largest ratio that is comparable, and the largest that is slightly less efficient: our reading of these words.
COMPARABLE, SLIGHTLY = 1.1, 1.25
#: The published forms: iterations in the first block alone, and in all of them.
_FIRST_BLOCK, _ALL_BLOCKS = (4, 5, 6), (2,)


@dataclass(frozen=True)
class _Ratio:
    """A cost over that of symmetric attention: exact, or the mean of repeats with an interval, if they have one."""

    name: str
    limit: float
    mean: float
    interval: tuple[float, float] | None

    @property
    def decision(self) -> Decision:
        """Within the limit, beyond it, or open."""
        if self.interval is None:
            return VerdictWord.UNDECIDED, Finding.TOO_FEW_INPUTS
        low, high = self.interval
        if low > self.limit:
            return VerdictWord.REFUTED, Finding.OTHER_NUMBERS
        if high > self.limit:
            return VerdictWord.UNDECIDED, Finding.TOO_WIDE
        return VerdictWord.SUPPORTED, Finding.SHOWN

    def __str__(self) -> str:
        low, high = self.interval or (self.mean, self.mean)
        bracket = f" [{low:.2f}, {high:.2f}]" if low < high else ""
        return f"{self.name} ×{self.mean:.2f}{bracket}{' (no interval)' if self.interval is None else ''}"


def _pairs(tables: Sequence[CostTable]) -> Iterator[tuple[NetworkCost, NetworkCost]]:
    """Every network of a published form with that of symmetric attention in the same table."""
    for table in tables:
        plain = {
            _without_attention(own.architecture): own
            for own in table.networks
            if ResolvedAttention.of(own.architecture).is_plain_symmetric
        }
        for own in table.networks:
            baseline = plain.get(_without_attention(own.architecture))
            if baseline is not None and _is_published(ResolvedAttention.of(own.architecture), own.architecture.depth):
                yield own, baseline


def _without_attention(own: Architecture) -> str:
    """Equal for networks that differ in nothing but their attention."""
    plain = {name: value for name, value in json_file.plain(own).items() if name not in ATTENTION_FIELDS}
    return json.dumps(plain, sort_keys=True)


def _is_published(own: ResolvedAttention, depth: int) -> bool:
    if not own.is_iterated_rpc or own.pursuit is None:
        return False
    published = {(0,): _FIRST_BLOCK, tuple(range(depth)): _ALL_BLOCKS}
    return own.pursuit.iterations in published.get(own.layers, ())


def _ratios(own: PassCost, baseline: PassCost, limit: float, level: float) -> list[_Ratio]:
    """Operations and memory, which are counts, and time, by CUDA graphs where there are any."""
    counts = {"operations": own.operations / baseline.operations, "memory": own.memory / baseline.memory}
    found = [_Ratio(name, limit, ratio, (ratio, ratio)) for name, ratio in counts.items()]
    name, times = ("time", own.times) if own.graph is None else ("time of a CUDA graph", own.graph)
    logarithms = np.log(times.own) - np.log(times.symmetric)
    interval = student_interval(logarithms, level)
    bounds = None if interval is None else (float(np.exp(interval[0])), float(np.exp(interval[1])))
    return [*found, _Ratio(name, limit, float(np.exp(logarithms.mean())), bounds)]


def _decide(decisions: Sequence[Decision]) -> Decision:
    """All must be within their limits: one that is beyond refutes the claim, whatever is open."""
    for word in (VerdictWord.REFUTED, VerdictWord.UNDECIDED):
        if found := [own for own in decisions if own[0] is word]:
            return found[0]
    return decisions[0]


def _judge(tables: Sequence[CostTable], terms: Terms) -> list[Verdict]:
    return [_verdict(own, baseline, terms.level) for own, baseline in _pairs(tables)]


def _verdict(own: NetworkCost, baseline: NetworkCost, level: float) -> Verdict:
    passes = {
        "inference": _ratios(own.inference, baseline.inference, COMPARABLE, level),
        "training": _ratios(own.training, baseline.training, SLIGHTLY, level),
    }
    decision = _decide([ratio.decision for ratios in passes.values() for ratio in ratios])
    reason = "; ".join(f"{name}: {', '.join(map(str, ratios))}" for name, ratios in passes.items())
    return Verdict(CLAIM.name, f"{own.size}: {own.attention}", *decision, f"over symmetric attention: {reason}")


CLAIM = Claim(
    name="rpc-cost",
    statement="RPC-Attention is comparable to symmetric attention in cost at test time, and slightly less efficient "
    "in training.",
    citation="Teo & Nguyen 2024, Table 13 (operations, run time, memory), in words",
    formula="c(RPC) / c(symmetric) for operations, peak memory and time of one pass of networks of the same size",
    rule=(
        f"Comparable is at most {COMPARABLE - 1:.0%} more, and slightly less efficient at most {SLIGHTLY - 1:.0%} "
        "more: the paper has words, and these limits are ours. Operations and memory are counts. Time is the mean "
        "ratio of passes that run in turn, by Student's t over the logarithms of repeats, widened for all times; of "
        "CUDA graphs where there are any. Supported if all six ratios are within their limits, refuted if one is "
        "beyond, with all of its interval, and undecided otherwise. The published forms are judged: four, five and six "
        "iterations in the first block, and two in all blocks."
    ),
    decided_by=(
        "ratio of operations, memory and time at inference",
        "ratio of operations, memory and time in training",
    ),
    limits="Time and memory are of this implementation and device; the authors' own differs, and keeps every score. "
    "Intervals are over the repeats of one run, and do not cover another run or machine.",
    reads=(RecordKind.COST,),
    needs="its command, which measures the networks",
    command="attnaudit cost",
    meanings={
        Finding.SHOWN: "every ratio is within its limit",
        Finding.OTHER_NUMBERS: "at least one ratio is beyond its limit",
        Finding.TOO_WIDE: "the interval of a time contains its limit",
    },
    decide=_judge,
    intervals=lambda tables: 2 * sum(1 for _ in _pairs(tables)),
)
