"""The reproduction study's own numbers."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit.claims.claim import Claim, Terms
from attnaudit.papers.tables import TABLES, compare
from attnaudit.protocol import Protocol
from attnaudit.records.audit import AuditedModel
from attnaudit.records.verdict import Verdict, VerdictWord

TOLERANCE = 0.03


def _decide(audits: Sequence[AuditedModel], terms: Terms) -> list[Verdict]:
    return [_verdict(audit) for audit in audits]


def _verdict(audit: AuditedModel) -> Verdict:
    if audit.protocol is not Protocol.PAPER:
        reason = "it is about numbers in the study's convention: add --protocol paper"
        return Verdict(CLAIM.name, audit.model, VerdictWord.NOT_MEASURABLE, reason)
    table = TABLES["table1"]
    if any(column.measure not in audit.observed for column in table.columns):
        return Verdict(CLAIM.name, audit.model, VerdictWord.NOT_MEASURABLE, "the run lacks the study's measures")
    entries = [e for e in compare(table, audit.model, audit.observed) if e.difference is not None]
    # MDC is left out: the whole published column lies inside the noise of eigenvector signs.
    entries = [e for e in entries if e.column != "MDC"]
    if not entries:
        return Verdict(CLAIM.name, audit.model, VerdictWord.NOT_MEASURABLE, "the study has no row for this model")
    worst = max(abs(e.difference or 0.0) for e in entries)
    numbers = ", ".join(f"{e.column} {e.ours:.2f} (published {(e.published or (0.0,))[0]:.2f})" for e in entries)
    return Verdict(
        CLAIM.name, audit.model, VerdictWord.SUPPORTED if worst <= TOLERANCE else VerdictWord.REFUTED, numbers
    )


CLAIM = Claim(
    name="study-similarity",
    statement="Cosine similarity and CKA of values and kernel-PCA values are as low as Table 1 says.",
    citation="Sarıtaş & Yıldız 2025, Table 1",
    formula="MOC = max over heads of the mean matched token cosine; LCKA, KCKA = means of biased CKA",
    rule=(
        f"Supported if MOC, LCKA and KCKA of the same model are within {TOLERANCE} of the published row, under "
        "`paper`. It says that the numbers repeat, not that they mean what they are taken to mean."
    ),
    decided_by=("matched_cosine_mean", "linear_cka", "kernel_cka"),
    decide=_decide,
)
