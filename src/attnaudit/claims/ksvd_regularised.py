"""Primal-Attention with its regulariser performs a kernel singular value decomposition."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from attnaudit.claims.claim import Claim, RecordKind, Terms
from attnaudit.measures import measure_named
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.training import TrainingRun
from attnaudit.records.verdict import Score, Verdict
from attnaudit.statistics.scores import head_score
from attnaudit.theories.registry import PRIMAL_SVD

_OVERLAPS = ("ksvd_left_overlap", "ksvd_right_overlap")


def _last_rows(trainings: Sequence[TrainingRun]) -> list[tuple[TrainingRun, Evidence]]:
    """The trainings with Primal layers, unregularised ones as references among them, and what was last seen of them."""
    found = []
    for training in trainings:
        if training.is_monitored:
            rows = training.rows.where(theory=PRIMAL_SVD.name)
            if rows.num_rows:
                last = rows.filter(pc.equal(rows["step"], pc.max(rows["step"])))
                found.append((training, Evidence.of_table(last)))
    return found


def _judge(trainings: Sequence[TrainingRun], terms: Terms) -> list[Verdict]:
    return [_verdict(training, rows, terms) for training, rows in _last_rows(trainings)]


def _verdict(training: TrainingRun, rows: Evidence, terms: Terms) -> Verdict:
    ((model,),) = rows.combinations("model")

    def scored(measure: str) -> Score:
        table = head_table(rows, model, measure, PRIMAL_SVD.name)
        return head_score(table, measure_named(measure), level=terms.level, seed=training.seed)

    subject = f"{training.name}, η = {training.recipe.ksvd_weight:g}"
    return CLAIM.verdict(subject, [scored(m) for m in CLAIM.decided_by], [scored(m) for m in CLAIM.shown], terms)


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
    reads=(RecordKind.TRAINING,),
    decide=_judge,
    intervals=lambda trainings: len(_OVERLAPS) * len(_last_rows(trainings)),
    needs="a training with attention: primal and a monitor",
)
