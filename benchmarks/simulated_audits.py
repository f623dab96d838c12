"""From heads to verdicts as an audit comes to them: the same references, measures, fits, evidence and jury."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from attnaudit import defaults
from attnaudit.audit.gathering import SAMPLE
from attnaudit.capture.heads import Heads
from attnaudit.claims.claim import Claim
from attnaudit.claims.jury import judge
from attnaudit.claims.registry import theories_for
from attnaudit.measures.batches import batches
from attnaudit.measures.ceiling import Ceiling
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measuring import measure_fits, measure_heads
from attnaudit.measures.selection import Selection, select
from attnaudit.measures.sensitivity import measure_sensitivity
from attnaudit.measures.two_passes import two_passes
from attnaudit.protocol import Protocol
from attnaudit.records.audit import AuditedModel
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_rows import HeadRows
from attnaudit.records.rows import rows_of
from attnaudit.records.verdict import Finding, HeadScore, Verdict, VerdictWord
from attnaudit.statistics.decisions import decides
from attnaudit.theories.fitting import FittedTheory
from attnaudit.theories.registry import THEORIES

#: The null and the ideal, by whether the inputs of layers are known; other references decide nothing.
REFERENCES = {True: ("random_projection", "planted"), False: ("rotated", "planted")}
#: What fitted theories have besides, and the noise that planted heads bear.
OF_FITS = ("random_keys", "rotated", "planted_with_noise")


@dataclass(frozen=True)
class Outcome:
    """What an audit says of a claim: heads by number, and by measure the score with its interval."""

    claim: str
    word: VerdictWord
    finding: Finding
    satisfying: tuple[int, ...]
    above_chance: tuple[int, ...]
    heads: int
    scores: dict[str, tuple[float, float, float]]
    noise_allowed: float | None = None

    @staticmethod
    def of(verdict: Verdict) -> Outcome:
        """What is counted of a verdict."""
        deciding = [score.heads for score in verdict.scores if decides(score)]

        def common(names: Sequence[set[tuple[int, int]]]) -> tuple[int, ...]:
            return tuple(head for _, head in sorted(set.intersection(*names))) if names else ()

        def named(heads: Sequence[HeadScore], which: str) -> set[tuple[int, int]]:
            return {(head.layer, head.head) for head in heads if getattr(head, which)}

        return Outcome(
            verdict.claim,
            verdict.word,
            verdict.finding,
            common([named(heads, "satisfies") for heads in deciding]),
            common([named(heads, "above_chance") for heads in deciding]),
            verdict.heads,
            {
                score.measure: (score.score.mean, *score.score.interval)
                for score in verdict.scores
                if score.score is not None and score.score.interval is not None
            },
            min((score.tolerance for score in verdict.scores if score.tolerance is not None), default=None),
        )


def selection(claims: Sequence[Claim], seed: int, *, known: bool = True) -> Selection:
    """What an audit computes to decide these claims; the null depends on whether the inputs of layers are known."""
    fitted = any(isinstance(THEORIES.get(claim.theory), FittedTheory) for claim in claims)
    return select(
        measures=dict.fromkeys(name for claim in claims for name in claim.decided_by),
        theories=theories_for(claims),
        references=(*REFERENCES[known], *OF_FITS) if fitted else REFERENCES[known],
        repeats=defaults.REPEATS,
        seed=seed,
    )


def evidence(heads: Heads, chosen: Selection) -> pa.Table:
    """The rows of a layer: heads, references, best projections and gauges fitted to halves of the inputs, noise."""
    names = dict.fromkeys(entry.input for entry in heads.index)
    halves = {name: place % 2 for place, name in enumerate(names)}
    ceiling, passes = Ceiling(chosen.predicting, halves), two_passes(chosen, halves, list(halves)[:SAMPLE])
    for batch, _ in batches(heads, None):
        keys = KeyKernel(batch, chosen.protocol)
        for own in (ceiling, *passes):
            own.add(keys)
    for fitted in passes:
        fitted.fit()
    sample = KeyKernel(heads.part(0, SAMPLE * len(heads) // len(names)), chosen.protocol)
    found = chain(
        measure_heads([heads], chosen),
        ceiling.measure(chosen.protocol),
        measure_sensitivity(sample, chosen, list(names)[:SAMPLE]),
        measure_fits([heads], passes, chosen),
    )
    return rows_of(found)


def outcomes(table: pa.Table, model: str, claims: Sequence[Claim]) -> list[Outcome]:
    """What the jury makes of the rows of a model."""
    record = AuditedModel(model, HeadRows(Evidence.of_table(table)), {}, Protocol.EXACT)
    return [Outcome.of(verdict) for verdict in judge(claims, [record]).verdicts]
