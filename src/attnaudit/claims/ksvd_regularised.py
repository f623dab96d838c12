"""Primal-Attention with its regulariser performs a kernel singular value decomposition."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from attnaudit.claims.claim import Claim, Terms, score
from attnaudit.claims.meanings import MEANINGS, RecordKind
from attnaudit.protocol import Protocol
from attnaudit.records.audit import AuditedModel
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_rows import HeadRows
from attnaudit.records.schema import SCHEMA
from attnaudit.records.training import TrainingRun
from attnaudit.records.verdict import Finding, Score, Verdict
from attnaudit.theories.registry import PRIMAL_SVD

_NOTHING = Evidence.of_table(SCHEMA.empty_table())
_OVERLAPS = ("ksvd_left_overlap", "ksvd_right_overlap")


def _subjects(records: Sequence[AuditedModel | TrainingRun]) -> list[tuple[str, AuditedModel]]:
    """Networks with Primal layers by name, those trained without regulariser among them as references."""
    found = [(record.model, record) if isinstance(record, AuditedModel) else _trained(record) for record in records]
    return [(name, layers) for name, layers in found if (layers.model, PRIMAL_SVD.name) in _theories(layers)]


def _theories(audit: AuditedModel) -> list[tuple[str, str]]:
    return [(group.model, group.theory) for group in audit.heads.measured()]


def _trained(training: TrainingRun) -> tuple[str, AuditedModel]:
    """What the monitor measured last."""
    rows = (training.rows if training.is_monitored else _NOTHING).where(theory=PRIMAL_SVD.name)
    last = Evidence.of_table(rows.filter(pc.equal(rows["step"], pc.max(rows["step"]))))
    model = next((name for (name,) in last.combinations("model")), "")
    name = f"{training.name}, η = {training.recipe.ksvd_weight:g}"
    return name, AuditedModel(model, HeadRows(last), {}, Protocol.EXACT, training.seed)


def _judge(records: Sequence[AuditedModel | TrainingRun], terms: Terms) -> list[Verdict]:
    def scored(layers: AuditedModel, names: Sequence[str]) -> list[Score]:
        return [score(layers, name, PRIMAL_SVD.name, terms) for name in names]

    return [
        CLAIM.verdict(name, scored(layers, CLAIM.decided_by), scored(layers, CLAIM.shown), terms)
        for name, layers in _subjects(records)
    ]


CLAIM = Claim(
    name="ksvd-regularised",
    statement="With its regulariser, Primal-Attention's projection scores are those of a kernel SVD.",
    heads_have="the projection scores of a kernel SVD",
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
    meanings={
        **MEANINGS[RecordKind.AUDIT],
        Finding.PARTIAL: "closer to the singular vectors than random weights, but far from them",
        Finding.AT_CHANCE: "as close to the singular vectors as random weights",
        Finding.BELOW_CHANCE: "farther from the singular vectors than random weights",
    },
    reads=(RecordKind.TRAINING, RecordKind.AUDIT),
    decide=_judge,
    intervals=lambda records: len(_OVERLAPS) * len(_subjects(records)),
    needs="a training with attention: primal and a monitor, or an audit of a model with Primal-Attention",
)
