"""The models of an atlas for the terminal: a line each, and those that failed with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from attnaudit.records.verdict import VerdictWord
from attnaudit.report.atlas.audits import AtlasAudit, AtlasFailure
from attnaudit.report.tables import TableColumn, TableRow, terminal_table


def atlas_table(
    audits: Sequence[AtlasAudit], failures: Sequence[AtlasFailure], *, wide: bool = False
) -> RenderableType:
    """Verdicts by number, the best theory and the best head of every model."""
    columns = [
        TableColumn("model", whole=True),
        TableColumn("field"),
        *(TableColumn(name, number=True) for name in ("heads", "inputs")),
        *(TableColumn(word.value, number=True) for word in VerdictWord),
        TableColumn("best theory"),
        TableColumn("best head", extra=True),
        TableColumn("replay error", number=True, extra=True),
    ]
    rows = [TableRow([Text(str(cell)) for cell in _cells(audit)]) for audit in audits]
    parts: list[RenderableType] = [terminal_table("Verdicts by model", columns, rows, wide=wide)] if rows else []
    parts += [Text.assemble((own.entry.name, "bold"), " failed: ", own.reason) for own in failures]
    return Group(*parts)


def _cells(audit: AtlasAudit) -> list[object]:
    counts = Counter(own.word for own in audit.verdicts.values())
    first = next((own for own in audit.ranking.values() if own.place == 1), None)
    best, error = audit.best_head, audit.summary.capture.replay_error
    return [
        *(audit.entry.name, audit.entry.field, f"{audit.heads:,}", audit.inputs),
        *(counts[word] for word in VerdictWord),
        "none" if first is None or first.least is None else f"{first.theory} {first.least.score}",
        "none" if best is None else f"{best.layer}.{best.head} {best.theory} {best.score}",
        "missing" if error is None else f"{error:.1e}",
    ]


def atlas_records(audits: Sequence[AtlasAudit], failures: Sequence[AtlasFailure]) -> dict[str, object]:
    """The same as plain data."""
    return {
        "models": {
            audit.entry.name: {
                **{"field": audit.entry.field, "heads": audit.heads, "inputs": audit.inputs},
                "verdicts": {claim: own.words for claim, own in audit.verdicts.items()},
                "theories": {name: own.mean for name, own in audit.ranking.items()},
                "replay_error": audit.summary.capture.replay_error,
            }
            for audit in audits
        },
        "failures": {own.entry.name: own.reason for own in failures},
    }
