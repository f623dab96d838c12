"""The jury: from claims and records to verdicts, with intervals that hold together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnaudit.claims.claim import Claim, Terms
from attnaudit.claims.meanings import RecordKind
from attnaudit.measures import Measure, Reference
from attnaudit.records.audit import AuditedModel
from attnaudit.records.cost import CostTable
from attnaudit.records.evaluated_networks import Evaluation
from attnaudit.records.training import TrainingRun
from attnaudit.records.trials import Trials
from attnaudit.records.verdict import Verdict
from attnaudit.statistics.decisions import CHANCE, THRESHOLD
from attnaudit.statistics.intervals import CONFIDENCE, widened_level
from attnaudit.theories.base import Theory

#: The type of a record, by its kind.
RECORDS: Mapping[RecordKind, type] = {
    RecordKind.AUDIT: AuditedModel,
    RecordKind.TRAINING: TrainingRun,
    RecordKind.EVALUATION: Evaluation,
    RecordKind.LABORATORY: Trials,
    RecordKind.COST: CostTable,
}


@dataclass(frozen=True)
class Judgement:
    """The verdicts, and by claim the confidence level of its intervals."""

    verdicts: tuple[Verdict, ...]
    levels: Mapping[str, float]

    @property
    def level(self) -> float:
        """The level of the widest intervals."""
        return max(self.levels.values(), default=CONFIDENCE)


def judge(
    claims: Sequence[Claim],
    records: Sequence[Any],
    *,
    threshold: float = THRESHOLD,
    chance: float = CHANCE,
    own: tuple[Measure | Theory | Reference, ...] = (),
) -> Judgement:
    """Judge each claim on the records of every kind that it reads.

    Several intervals are several tests, so those of a claim are widened (Bonferroni) until all of them hold together
    with 95 % confidence. Which other claims are judged makes no difference.

    Args:
        claims: what is judged.
        records: what it is judged on; those of a kind that no claim reads are ignored.
        threshold: the score that counts as the claim.
        chance: the score up to which it counts as chance.
        own: measures, theories and references of the user's that the records were made with.
    """
    cases = [
        (claim, kind, read)
        for claim in claims
        for kind in claim.reads
        if (read := [record for record in records if isinstance(record, RECORDS[kind])])
    ]
    verdicts: list[Verdict] = []
    levels: dict[str, float] = {}
    for claim, _, read in cases:
        level = widened_level(claim.count_intervals(read))
        levels[claim.name] = max(level, levels.get(claim.name, 0.0))
        verdicts += claim.judge(read, Terms(threshold, chance, level, own))
    return Judgement(tuple(verdicts), levels)
