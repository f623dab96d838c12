"""Tables of scores for the terminal: measures with their references, theories compared, and models by verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from attnaudit.records.schema import OBSERVED
from attnaudit.records.verdict import Rank, Score, Verdict, VerdictWord
from attnaudit.report.verdict_cards import verdict_text
from attnaudit.statistics.decisions import decides


def score_table(title: str, verdicts: Sequence[tuple[str, Verdict]]) -> Table:
    """Every measure of some verdicts beside its references; those in brackets do not decide."""
    scores = [entry for _, verdict in verdicts for entry in (*verdict.scores, *verdict.shown)]
    nulls = " and ".join(dict.fromkeys(entry.null for entry in scores if entry.null))
    words = f"Measures and their references: {title}{nulls and f' (null: {nulls})'}"
    table = Table(title=Text(words), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("measure", no_wrap=True)
    for name in ("observed", "null", "planted", "score", "reach", "noise allowed"):
        table.add_column(name, justify="right", overflow="fold")
    for label, verdict in verdicts:
        if verdict.scores:
            table.add_row(Text(label, style="bold"))
        for place, entry in enumerate((*verdict.scores, *verdict.shown)):
            deciding = place < len(verdict.scores) and decides(entry)
            means = entry.means or {}
            table.add_row(
                f"  {entry.measure}" if place < len(verdict.scores) else f"  ({entry.measure})",
                _number(means.get(OBSERVED)),
                _number(means.get(entry.null or "")),
                _number(means.get("planted")),
                "–" if entry.score is None else str(entry.score),
                _reach(entry),
                "–" if entry.tolerance is None else f"{entry.tolerance:.1%}",
                style="" if deciding else "dim",
            )
    return table


def ranking_table(ranks: Sequence[Rank]) -> Table:
    """Theories from best to worst, each by the deciding measure that says least of it; then those without a place."""
    table = Table(title="Theories compared, best first", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("", justify="right")
    table.add_column("theory", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("realised", justify="right", no_wrap=True)
    table.add_column("heads above chance", justify="right")
    table.add_column("verdict", no_wrap=True)
    for entry in ranks:
        least = entry.least
        table.add_row(
            "–" if entry.place is None else str(entry.place),
            Text(entry.theory),
            "–" if least is None else str(least.score),
            _realised(entry),
            f"{entry.above_chance} of {entry.heads}" if entry.heads else "–",
            verdict_text(entry.word, f"{entry.word} ({entry.finding})"),
        )
    return table


def _realised(entry: Rank) -> str:
    """Of what the best projection reaches, where a measure has such a ceiling."""
    found = [str(score.realised) for score in entry.scores if score.realised is not None]
    return found[0] if found else "–"


def tally_table(verdicts: Sequence[Verdict]) -> Table:
    """How many models have which verdict."""
    table = Table(title="Number of models by verdict", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("claim", no_wrap=True)
    words = [word for word in VerdictWord if any(verdict.word is word for verdict in verdicts)]
    for word in words:
        table.add_column(word.value, justify="right")
    for claim in dict.fromkeys(verdict.claim for verdict in verdicts):
        counts = Counter(verdict.word for verdict in verdicts if verdict.claim == claim)
        table.add_row(claim, *(str(counts[word]) for word in words))
    return table


def _reach(score: Score) -> str:
    """What a network could attain: on new inputs, and at most."""
    if score.reach is None:
        return "–"
    return f"{score.reach.mean:z.2f}" + ("" if score.fitted_reach is None else f" to {score.fitted_reach.mean:z.2f}")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:z.3g}"
