"""One line per model: verdicts on all claims, scores of all theories, and what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnaudit.records.verdict import Rank, Score, Verdict
from attnaudit.report.atlas.audits import AtlasAudit, AtlasFailure, claims_of, telling_score, theories_of
from attnaudit.report.data_files import write_rows

TABLE = "atlas.csv"
Cells = dict[str, object]


def write_table(audits: Sequence[AtlasAudit], failures: Sequence[AtlasFailure], folder: Path) -> None:
    """Write `atlas.csv`: models that failed have a line with the reason."""
    claims, theories = claims_of(audits), theories_of(audits)
    audited: list[Cells] = [_line(audit, claims, theories) for audit in audits]
    names = list(audited[0]) if audited else ["model", "field", "failure"]
    failed: list[Cells] = [
        {"model": own.entry.name, "field": own.entry.field, "failure": own.reason} for own in failures
    ]
    rows: list[Cells] = [{name: row.get(name, "") for name in names} for row in [*audited, *failed]]
    if rows:
        write_rows(rows, folder / TABLE)


def _line(audit: AtlasAudit, claims: Sequence[str], theories: Sequence[str]) -> Cells:
    entry, best = audit.entry, audit.best_head
    found: Cells = {
        **{"model": entry.name, "field": entry.field, "architecture": entry.architecture, "licence": entry.licence},
        **{"layers": audit.layers, "heads": audit.heads, "inputs": audit.inputs},
        "replay_error": audit.summary.capture.replay_error,
        "seconds": None if audit.seconds is None else round(audit.seconds),
    }
    for claim in claims:
        found |= _claim_cells(claim, audit.verdicts.get(claim))
    for theory in theories:
        found |= _theory_cells(theory, audit.ranking.get(theory))
    found |= {
        "best_head": "" if best is None else f"{best.layer}.{best.head}",
        "best_head_theory": "" if best is None else best.theory,
        "best_head_score": None if best is None or best.score is None else best.score.mean,
        "failure": "",
    }
    return found


def _claim_cells(claim: str, verdict: Verdict | None) -> Cells:
    return {
        f"{claim}: verdict": "" if verdict is None else verdict.words,
        **_score_cells(claim, None if verdict is None else telling_score(verdict)),
    }


def _theory_cells(theory: str, rank: Rank | None) -> Cells:
    return {
        **_score_cells(f"theory {theory}", None if rank is None else rank.least),
        f"theory {theory}: heads above chance": None if rank is None or not rank.heads else rank.above_chance,
    }


def _score_cells(name: str, score: Score | None) -> Cells:
    estimate = None if score is None else score.score
    low, high = (None, None) if estimate is None or estimate.interval is None else estimate.interval
    return {
        f"{name}: measure": "" if score is None else score.measure,
        f"{name}: score": None if estimate is None else estimate.mean,
        f"{name}: low": low,
        f"{name}: high": high,
    }
