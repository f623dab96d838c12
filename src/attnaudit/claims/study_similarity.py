"""The reproduction study's own numbers."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit.claims.claim import Claim, Terms
from attnaudit.display import counted, enumerated
from attnaudit.papers.tables import TABLES, compare
from attnaudit.protocol import Protocol
from attnaudit.records.audit import AuditedModel
from attnaudit.records.grouped_rows import Group
from attnaudit.records.verdict import Finding, Verdict, VerdictWord
from attnaudit.statistics.decisions import LEAST_INPUTS

TOLERANCE = 0.03


def _decide(audits: Sequence[AuditedModel], terms: Terms) -> list[Verdict]:
    return [_verdict(audit) for audit in audits if audit.protocol is Protocol.PAPER]


def _verdict(audit: AuditedModel) -> Verdict:
    def undecided(finding: Finding, reason: str) -> Verdict:
        return Verdict(CLAIM.name, audit.model, VerdictWord.UNDECIDED, finding, reason, missing=reason)

    tables = [TABLES[name] for name in ("table1", "table4")]
    if any(column.measure not in audit.observed for table in tables for column in table.columns):
        return undecided(Finding.NOT_MEASURED, "the run lacks the study's measures")
    # MDC is left out: the whole published column lies inside the noise of eigenvector signs.
    entries = [
        entry
        for table in tables
        for entry in compare(table, audit.model, audit.observed)
        if entry.published is not None and entry.column != "MDC"
    ]
    if not entries:
        return undecided(Finding.NOT_MEASURED, "the study has no row for this model")
    if lost := [entry.column for entry in entries if entry.difference is None]:
        return undecided(Finding.NOT_MEASURED, f"the run has no number for {enumerated(lost, 'and')}")
    inputs = audit.heads.means(Group(audit.model, CLAIM.theory, CLAIM.decided_by[0])).inputs
    if inputs < LEAST_INPUTS:
        words = f"{counted(inputs, 'independent input')}, and {LEAST_INPUTS} are needed"
        return undecided(Finding.TOO_FEW_INPUTS, words)
    worst = max(abs(entry.difference or 0.0) for entry in entries)
    numbers = ", ".join(f"{e.column} {e.ours:.2f} (published {(e.published or (0.0,))[0]:.2f})" for e in entries)
    repeated = worst <= TOLERANCE
    word, finding = (VerdictWord.SUPPORTED, Finding.SHOWN) if repeated else (VerdictWord.REFUTED, Finding.OTHER_NUMBERS)
    return Verdict(CLAIM.name, audit.model, word, finding, numbers)


CLAIM = Claim(
    name="study-similarity",
    statement="Cosine similarity and CKA of values and kernel-PCA values are as low as Tables 1 and 4 say.",
    citation="Sarıtaş & Yıldız 2025, Tables 1 and 4",
    formula="MOC = max over heads of the mean matched token cosine; LCKA, KCKA = means of biased CKA",
    rule=(
        f"Supported if MOC, LCKA and KCKA of the same model are within {TOLERANCE} of the published row, under "
        f"`paper`, on {LEAST_INPUTS} inputs or more. It says that the numbers repeat, not that they mean what they are "
        "taken to mean."
    ),
    needs="an audit in the study's convention: add --protocol paper",
    decided_by=("matched_cosine_mean", "linear_cka", "kernel_cka"),
    decide=_decide,
)
