"""What the papers say: their tables and figures as data, and how to repeat them."""

from attnaudit.claims.claim import Claim, Exhibit
from attnaudit.records.verdict import Verdict, Word

__all__ = ["Claim", "Exhibit", "Verdict", "Word"]
