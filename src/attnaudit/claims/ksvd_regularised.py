"""Primal-Attention with its regulariser performs a kernel singular value decomposition."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from attnaudit.claims.claim import reason_for
from attnaudit.claims.training import TrainingClaim
from attnaudit.measures import measure_named
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.training import TrainingRun
from attnaudit.records.verdict import Score, Verdict
from attnaudit.statistics.decisions import combined_word, word_of_score
from attnaudit.statistics.intervals import widened_level
from attnaudit.statistics.scores import head_score
from attnaudit.theories.registry import PRIMAL_SVD


def _judge(trainings: Sequence[TrainingRun]) -> list[Verdict]:
    """A verdict for each training with Primal layers, the unregularised ones among them as references."""
    watched = [(training, rows) for training in trainings if (rows := _last_rows(training)) is not None]
    level = widened_level(len(watched) * len(CLAIM.deciding))
    return [_verdict(training, rows, level) for training, rows in watched]


def _last_rows(training: TrainingRun) -> Evidence | None:
    """What the monitor saw of Primal layers when it looked last."""
    if not training.is_monitored:
        return None
    rows = training.rows.where(theory=PRIMAL_SVD.name)
    return Evidence.of_table(rows.filter(pc.equal(rows["step"], pc.max(rows["step"])))) if rows.num_rows else None


def _verdict(training: TrainingRun, rows: Evidence, level: float) -> Verdict:
    ((model,),) = rows.combinations("model")

    def scored(measure: str) -> Score:
        table = head_table(rows, model, measure, PRIMAL_SVD.name)
        return head_score(table, measure_named(measure), level=level, seed=training.seed)

    deciding, shown = [tuple(scored(measure) for measure in names) for names in (CLAIM.deciding, CLAIM.shown)]
    word = combined_word([word_of_score(entry) for entry in deciding])
    subject = f"{training.name}, η = {training.recipe.ksvd_weight:g}"
    return Verdict(CLAIM.name, subject, word, reason_for(word, deciding), deciding, shown)


CLAIM = TrainingClaim(
    name="ksvd-regularised",
    statement="With its regulariser, Primal-Attention's projection scores are those of a kernel SVD.",
    citation="Chen et al. 2023, sections 3 and 4, Lemma 4.2",
    formula="K R Λ/N = E and Kᵀ E Λ/N = R; span E the leading left, span R the leading right singular vectors of K",
    rule=(
        "The overlap of the span of E with the leading left singular vectors of its kernel, and of R with the right "
        "ones, scored between Gaussian weights (0) and the weights of the SVD (1). J = 0 proves nothing, since W = 0 "
        "has it too; the residual of the dual equations is shown beside. A training with η = 0 is the reference."
    ),
    deciding=("ksvd_left_overlap", "ksvd_right_overlap"),
    shown=("ksvd_dual_residual",),
    judge=_judge,
    needs="a training with attention: primal and a monitor",
)
