"""A finished audit: the evidence, and what it says of every claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from attnaudit.audit import AuditSettings, Measured
from attnaudit.audit.ranking import rank
from attnaudit.claims.claim import Claim
from attnaudit.claims.registry import judge
from attnaudit.records.evidence import Evidence
from attnaudit.records.verdict import Rank, Verdict
from attnaudit.statistics.decisions import THRESHOLD


@dataclass(frozen=True)
class Judged:
    """An audit with its verdicts: `evidence` is a pyarrow table of all rows.

    `level` is the confidence of every interval, widened so that all of them hold together with 95 %. `ranking` compares
    the theories where there are several.
    """

    path: Path
    rows: Evidence
    summary: dict[str, Any]
    verdicts: tuple[Verdict, ...]
    ranking: tuple[Rank, ...]
    level: float
    _keep_alive: Any = field(default=None, repr=False, compare=False)

    @cached_property
    def evidence(self) -> pa.Table:
        """All rows; read from the run folder when first asked for, while `rows` answers questions without that."""
        return self.rows.table()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}({len(self.rows):,} rows of evidence in {self.path})"]
        for model in self.summary["models"]:
            lines.append(f"  {model}")
            lines += [f"    {v.claim:<20}{v.word.value:<20}{v.reason}" for v in self.verdicts if v.model == model]
        return "\n".join(lines)


def conclude(
    measured: Measured, settings: AuditSettings, claims: Sequence[Claim], threshold: float = THRESHOLD
) -> Judged:
    """Judge the claims, and write `summary.json`: statistics and verdicts together, once."""
    verdicts, level = judge(
        measured.rows, measured.summary, claims, settings.protocol.value, threshold=threshold, seed=settings.seed
    )
    theories = settings.theories
    ranking = [
        entry
        for model in measured.summary["models"]
        if len(theories) > 1
        for entry in rank(measured.rows, model, theories, threshold=threshold, seed=settings.seed)
    ]
    summary = measured.summary | {
        "claims": {claim.name: _in_words(claim) for claim in claims},
        "verdicts": [asdict(verdict) for verdict in verdicts],
        "ranking": [asdict(entry) for entry in ranking],
        "interval_level": level,
        "threshold": threshold,
    }
    measured.folder.write_summary(summary)
    return Judged(
        measured.folder.path, measured.rows, summary, tuple(verdicts), tuple(ranking), level, measured.keep_alive
    )


def _in_words(claim: Claim) -> dict[str, str]:
    """What a reader of the run needs to know of a claim that may be nobody's but its author's."""
    return {"statement": claim.statement, "theory": claim.theory}
