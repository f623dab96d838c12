"""The eigenvalue magnitudes Teo & Nguyen report."""

from __future__ import annotations

from collections.abc import Sequence

from attnaudit.claims.claim import Claim, Terms
from attnaudit.records.audit import AuditedModel
from attnaudit.records.verdict import Finding, Verdict, VerdictWord


def _decide(audits: Sequence[AuditedModel], terms: Terms) -> list[Verdict]:
    return [_verdict(audit) for audit in audits]


def _verdict(audit: AuditedModel) -> Verdict:
    ratio, largest = (audit.observed.get(name) for name in ("eigenvalue_bound_ratio", "eigenvalue_max"))
    if ratio is None or largest is None or ratio.max is None or largest.max is None:
        reason = "the run has no eigenvalues and bounds"
        return Verdict(CLAIM.name, audit.model, VerdictWord.UNDECIDED, Finding.NOT_MEASURED, reason)
    measured = f"here the largest is {largest.max:.2e} ({largest.n:,} heads and inputs), {ratio.max:.3f} of its bound"
    return Verdict(
        CLAIM.name,
        audit.model,
        VerdictWord.REFUTED,
        Finding.IMPOSSIBLE,
        f"every eigenvalue of K̃ is at most 1/min g < 1, and all published ones exceed 1; {measured}",
    )


CLAIM = Claim(
    name="kpca-eigenvalues",
    statement="The centred Gram matrix has eigenvalues of 648.46 / 4.65 / 40.07 / 17.73 (max / min / mean / median).",
    citation="Teo & Nguyen 2024; called irreproducible by Sarıtaş & Yıldız 2025, section 5",
    formula="μ₁(K̃) ≤ λ_max(K_φ) ≤ 1/min_i g_i < 1, since K_φ = D^-½ S D^-½ with S similar to a stochastic matrix",
    rule=(
        "A theorem decides, for any model: the largest published eigenvalue exceeds the bound. What the run adds is "
        "how close the heads come to it. `attnaudit paper forensics` tries other conventions for these numbers."
    ),
    limits="This is about the numbers in the paper, not about this model.",
    decided_by=("eigenvalue_bound_ratio", "eigenvalue_max"),
    meanings={Finding.IMPOSSIBLE: "impossible for any network, by a theorem"},
    decide=_decide,
)
