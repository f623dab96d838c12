"""What papers claim about attention: one file per claim, and the jury that judges them."""

from attnaudit.claims.claim import Claim, Terms, score
from attnaudit.claims.meanings import RecordKind
from attnaudit.records.audit import AuditedModel
from attnaudit.records.verdict import Finding, Score, Verdict, VerdictWord

__all__ = ["AuditedModel", "Claim", "Finding", "RecordKind", "Score", "Terms", "Verdict", "VerdictWord", "score"]
