"""Tables of scores for the terminal: measures with their references, theories compared, and models by verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from attnaudit.display import counted
from attnaudit.records.schema import OBSERVED
from attnaudit.records.verdict import Rank, Score, Verdict, VerdictWord
from attnaudit.report.tables import TableColumn, TableRow, terminal_table
from attnaudit.report.verdict_cards import verdict_text
from attnaudit.statistics.decisions import decides


def score_table(title: str, verdicts: Sequence[tuple[str, Verdict]], *, wide: bool = False) -> Table:
    """Every measure of some verdicts beside its references; those in brackets do not decide."""
    scores = [entry for _, verdict in verdicts for entry in (*verdict.scores, *verdict.shown)]
    nulls = " and ".join(dict.fromkeys(entry.null for entry in scores if entry.null))
    columns = [
        TableColumn("measure", whole=True),
        TableColumn("observed", number=True),
        TableColumn("null", number=True),
        TableColumn("planted", number=True, extra=True),
        TableColumn("score", number=True),
        TableColumn("reach", number=True, extra=True),
        TableColumn("noise allowed", number=True, extra=True),
    ]
    rows: list[TableRow] = []
    for label, verdict in verdicts:
        if verdict.scores:
            rows.append(TableRow([Text(label, style="bold")]))
        for place, entry in enumerate((*verdict.scores, *verdict.shown)):
            deciding = place < len(verdict.scores) and decides(entry)
            means = entry.means or {}
            cells = [
                f"  {entry.measure}" if place < len(verdict.scores) else f"  ({entry.measure})",
                _number(means.get(OBSERVED)),
                _number(means.get(entry.null or "")),
                _number(means.get("planted")),
                "–" if entry.score is None else str(entry.score),
                _reach(entry),
                "–" if entry.tolerance is None else f"{entry.tolerance:.1%}",
            ]
            rows.append(TableRow(cells, "" if deciding else "dim"))
    words = f"Measures and their references: {title}{nulls and f' (null: {nulls})'}"
    return terminal_table(words, columns, rows, wide=wide)


def ranking_table(ranks: Sequence[Rank], *, wide: bool = False) -> Table:
    """Theories from best to worst, each by the deciding measure that says least of it; then those without a place."""
    columns = [
        TableColumn("", number=True),
        TableColumn("theory", whole=True),
        TableColumn("score", number=True, whole=True),
        TableColumn("realised", number=True, whole=True, extra=True),
        TableColumn("above chance", number=True),
        TableColumn("verdict"),
    ]
    rows = [
        TableRow(
            [
                "–" if entry.place is None else str(entry.place),
                Text(entry.theory),
                "–" if entry.least is None else str(entry.least.score),
                _realised(entry),
                f"{entry.above_chance} of {counted(entry.heads, 'head')}" if entry.heads else "–",
                verdict_text(entry.word, f"{entry.word} ({entry.finding})"),
            ]
        )
        for entry in ranks
    ]
    return terminal_table("Theories compared, best first", columns, rows, wide=wide)


def _realised(entry: Rank) -> str:
    """Of what the best projection reaches, where a measure has such a ceiling."""
    found = [str(score.realised) for score in entry.scores if score.realised is not None]
    return found[0] if found else "–"


def tally_table(verdicts: Sequence[Verdict]) -> Table:
    """How many models have which verdict."""
    words = [word for word in VerdictWord if any(verdict.word is word for verdict in verdicts)]
    rows = []
    for claim in dict.fromkeys(verdict.claim for verdict in verdicts):
        counts = Counter(verdict.word for verdict in verdicts if verdict.claim == claim)
        rows.append(TableRow([claim, *(str(counts[word]) for word in words)]))
    columns = [TableColumn("claim", whole=True), *(TableColumn(word.value, number=True) for word in words)]
    return terminal_table("Number of models by verdict", columns, rows)


def _reach(score: Score) -> str:
    """What a network could attain: on new inputs, and at most."""
    if score.reach is None:
        return "–"
    return f"{score.reach.mean:z.2f}" + ("" if score.fitted_reach is None else f" to {score.fitted_reach.mean:z.2f}")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:z.3g}"
