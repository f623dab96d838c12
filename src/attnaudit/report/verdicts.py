"""Verdicts, scores and rankings for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attnaudit.claims.claim import MEANINGS, Statement
from attnaudit.claims.run import Judged
from attnaudit.records.verdict import Rank, Score, Verdict, Word

_COLOURS = {
    Word.SUPPORTED: "green",
    Word.REFUTED: "red",
    Word.INDISTINGUISHABLE: "yellow",
    Word.INCONCLUSIVE: "magenta",
}


def verdict_report(run: Judged) -> RenderableType:
    """Per model: the verdicts, the scores behind them, and the ranking of theories; then what the words mean."""
    parts: list[RenderableType] = []
    for model in run.summary["models"]:
        mine = [verdict for verdict in run.verdicts if verdict.model == model]
        parts += [_scores(model, mine), _verdicts(model, mine)] if mine else []
        ranks = [entry for entry in run.ranking if entry.model == model]
        if ranks:
            parts.append(_ranking(ranks))
    if len(run.summary["models"]) > 1 and run.verdicts:
        parts.append(_tally(run.verdicts))
    words = dict.fromkeys([v.word for v in run.verdicts] + [entry.word for entry in run.ranking])
    parts.append(legend(list(words), f"bootstrap over inputs at {run.level:.2%}"))
    return Group(*parts)


def claim_page(claim: Statement) -> RenderableType:
    """A claim to read: statement, source, formula, rule, measures."""
    lines = [
        ("statement", claim.statement),
        ("source", claim.citation),
        ("formula", claim.formula),
        ("rule", claim.rule),
        ("decided by", ", ".join(claim.deciding)),
        ("judged by", claim.judged_by),
    ]
    if claim.shown:
        lines.append(("shown beside", ", ".join(claim.shown)))
    grid = Table.grid(padding=(0, 2, 1, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    for name, text in lines:
        grid.add_row(name, Text(text))
    return Group(Text(claim.name, style="bold underline"), Padding(grid, (1, 0, 0, 0)))


def _verdicts(model: str, verdicts: Sequence[Verdict]) -> Table:
    table = Table(title=Text(f"Verdicts: {model}"), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("claim", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("because (score: 0 = chance, 1 = the claim)")
    for verdict in verdicts:
        table.add_row(verdict.claim, word_text(verdict.word), Text(verdict.reason))
    return table


def _scores(model: str, verdicts: Sequence[Verdict]) -> Table:
    table = Table(title=Text(f"Measures between their references: {model}"), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("measure", no_wrap=True)
    for name in ("observed", "best null", "planted", "score", "power"):
        table.add_column(name, justify="right", no_wrap=True)
    for verdict in verdicts:
        if verdict.scores:
            table.add_row(Text(verdict.claim, style="bold"))
        for place, entry in enumerate((*verdict.scores, *verdict.shown)):
            decides = place < len(verdict.scores)
            name = entry.measure if decides else f"({entry.measure})"
            power = "–" if entry.auc is None else f"{entry.auc:.2f}" + ("" if entry.has_power else " no power")
            style = "" if decides and entry.has_power else "dim"
            table.add_row(
                f"  {name}",
                _number(entry.observed),
                f"{_number(entry.null)} {(entry.null_name or '')}".strip(),
                _number(entry.planted),
                score_text(entry) if entry.has_power else "–",
                power,
                style=style,
            )
    return table


def _ranking(ranks: Sequence[Rank]) -> Table:
    table = Table(title="Which theory explains the values best?", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("theory", no_wrap=True)
    table.add_column("mean score", justify="right")
    for score in ranks[0].scores:
        table.add_column(score.measure, justify="right")
    table.add_column("verdict")
    for entry in ranks:
        cells = [score_text(one) for one in entry.scores]
        table.add_row(Text(entry.theory), _number(entry.mean), *cells, word_text(entry.word))
    return table


def _tally(verdicts: Sequence[Verdict]) -> Table:
    table = Table(title="Models under each word", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("claim", no_wrap=True)
    words = [word for word in Word if any(verdict.word is word for verdict in verdicts)]
    for word in words:
        table.add_column(word.value, justify="right")
    for claim in dict.fromkeys(verdict.claim for verdict in verdicts):
        counts = Counter(verdict.word for verdict in verdicts if verdict.claim == claim)
        table.add_row(claim, *(str(counts[word]) for word in words))
    return table


def legend(words: Sequence[Word], intervals: str, meanings: Mapping[Word, str] = MEANINGS) -> Text:
    """What the words mean, and what the intervals are."""
    text = Text()
    for word in words:
        text.append_text(word_text(word)).append(f": {meanings[word]}.\n")
    return text.append(f"Intervals: {intervals}, so that all hold together with 95 % (Bonferroni).", "dim")


def word_text(word: Word) -> Text:
    """A verdict in its colour."""
    return Text(word.value, style=_COLOURS.get(word, "dim"))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def score_text(score: Score) -> str:
    """A score with its interval."""
    if score.mean is None:
        return "–"
    return f"{score.mean:.2f}" + (
        "" if score.interval is None else f" [{score.interval[0]:.2f}, {score.interval[1]:.2f}]"
    )
