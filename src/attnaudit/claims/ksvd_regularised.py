"""Primal-Attention with its regulariser performs a kernel singular value decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from attnaudit.claims.claim import Claim, RecordKind, Terms
from attnaudit.measures import measure_named
from attnaudit.records.audited_model import AuditedModel
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.training import TrainingRun
from attnaudit.records.verdict import Score, Verdict
from attnaudit.statistics.scores import head_score
from attnaudit.theories.registry import PRIMAL_SVD

_OVERLAPS = ("ksvd_left_overlap", "ksvd_right_overlap")


@dataclass(frozen=True)
class _PrimalSubject:
    """Primal layers of one network, at one time: their rows, and how the network is called there and in the verdict."""

    name: str
    model: str
    rows: Evidence
    seed: int

    def score(self, measure: str, level: float) -> Score:
        table = head_table(self.rows, self.model, measure, PRIMAL_SVD.name)
        return head_score(table, measure_named(measure), level=level, seed=self.seed)


def _subjects(records: Sequence[AuditedModel | TrainingRun]) -> list[_PrimalSubject]:
    """The networks with Primal layers, those trained without regulariser among them as references."""
    found = [_audited(record) if isinstance(record, AuditedModel) else _trained(record) for record in records]
    return [subject for subject in found if subject is not None]


def _audited(audit: AuditedModel) -> _PrimalSubject | None:
    rows = audit.rows.where(theory=PRIMAL_SVD.name, model=audit.model)
    return _PrimalSubject(audit.model, audit.model, Evidence.of_table(rows), audit.seed) if rows.num_rows else None


def _trained(training: TrainingRun) -> _PrimalSubject | None:
    """What the monitor measured last."""
    rows = training.rows.where(theory=PRIMAL_SVD.name) if training.is_monitored else None
    if rows is None or not rows.num_rows:
        return None
    last = Evidence.of_table(rows.filter(pc.equal(rows["step"], pc.max(rows["step"]))))
    ((model,),) = last.combinations("model")
    return _PrimalSubject(f"{training.name}, η = {training.recipe.ksvd_weight:g}", model, last, training.seed)


def _judge(records: Sequence[AuditedModel | TrainingRun], terms: Terms) -> list[Verdict]:
    return [
        CLAIM.verdict(
            subject.name,
            [subject.score(measure, terms.level) for measure in CLAIM.decided_by],
            [subject.score(measure, terms.level) for measure in CLAIM.shown],
            terms,
        )
        for subject in _subjects(records)
    ]


CLAIM = Claim(
    name="ksvd-regularised",
    statement="With its regulariser, Primal-Attention's projection scores are those of a kernel SVD.",
    citation="Chen et al. 2023, sections 3 and 4, Lemma 4.2",
    formula="K R Λ/N = E and Kᵀ E Λ/N = R; span E the leading left, span R the leading right singular vectors of K",
    rule=(
        "The overlap of the span of E with the leading left singular vectors of its kernel, and of R with the right "
        "ones, scored between Gaussian weights (0) and the weights of the SVD (1). J = 0 proves nothing, since W = 0 "
        "has it too; the residual of the dual equations is shown beside. A training with η = 0 is the reference."
    ),
    decided_by=_OVERLAPS,
    shown=("ksvd_dual_residual",),
    theory=PRIMAL_SVD.name,
    reads=(RecordKind.TRAINING, RecordKind.AUDIT),
    decide=_judge,
    intervals=lambda records: len(_OVERLAPS) * len(_subjects(records)),
    needs="a training with attention: primal and a monitor, or an audit of a model with Primal-Attention",
)
