"""What a run keeps of what it measured."""

from __future__ import annotations

from enum import StrEnum


class Keep(StrEnum):
    """ROWS: a row for every head, input, reference and measure. SUMMARIES: what verdicts and pages need of them."""

    ROWS = "rows"
    SUMMARIES = "summaries"
