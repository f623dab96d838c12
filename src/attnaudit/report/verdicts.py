"""Verdicts for the terminal, for all kinds of records: the scores behind them, and the meaning of their words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnaudit.claims.claim import MEANINGS, RecordKind
from attnaudit.claims.registry import CLAIMS
from attnaudit.records.verdict import Rank, Score, Verdict, VerdictWord

_COLOURS = {
    VerdictWord.SUPPORTED: "green",
    VerdictWord.REFUTED: "red",
    VerdictWord.INDISTINGUISHABLE: "yellow",
    VerdictWord.INCONCLUSIVE: "magenta",
}
#: The kind of interval for each kind of record.
_INTERVALS = {
    RecordKind.AUDIT: "bootstrap over inputs",
    RecordKind.TRAINING: "bootstrap over inputs, or Student's t over seeds",
    RecordKind.EVALUATION: "Student's t over seeds",
    RecordKind.LABORATORY: "Student's t over independent repetitions",
}


def verdict_report(
    verdicts: Sequence[Verdict], levels: Mapping[str, float], ranking: Sequence[Rank] = (), *, audit: bool = False
) -> RenderableType:
    """By kind of record: the verdicts, the scores behind them, the ranking of theories, and the meaning of the words.

    Args:
        verdicts: the verdicts, shown by model for audits and by claim otherwise.
        levels: the confidence level of the intervals of each claim.
        ranking: theories by model.
        audit: whether all of this is about audited models; otherwise a claim is about what it reads first.
    """
    by_kind: dict[RecordKind, list[Verdict]] = {RecordKind.AUDIT: []} if audit else {}
    for verdict in verdicts:
        kind = RecordKind.AUDIT if audit else _kind(verdict)
        by_kind.setdefault(kind, []).append(verdict)
    parts: list[RenderableType] = []
    for kind, own in by_kind.items():
        parts += [*_tables(own, ranking, by_model=kind is RecordKind.AUDIT), _legend(kind, own, ranking, levels)]
    return Group(*parts)


def word_text(word: VerdictWord) -> Text:
    """A verdict in its colour."""
    return Text(word.value, style=_COLOURS.get(word, "dim"))


def _kind(verdict: Verdict) -> RecordKind:
    """The kind of record that its claim reads first; users' own claims are about audits."""
    return CLAIMS[verdict.claim].reads[0] if verdict.claim in CLAIMS else RecordKind.AUDIT


def _tables(verdicts: Sequence[Verdict], ranking: Sequence[Rank], *, by_model: bool) -> Iterator[Table]:
    titles = [verdict.model if by_model else verdict.claim for verdict in verdicts]
    for title in dict.fromkeys([*titles, *(rank.model for rank in ranking)]):
        labelled = [
            (verdict.claim if by_model else verdict.model, verdict)
            for verdict, own in zip(verdicts, titles, strict=True)
            if own == title
        ]
        if any(verdict.scores for _, verdict in labelled):
            yield _scores(title, labelled)
        if labelled:
            yield _verdicts(title, labelled, "claim" if by_model else "subject")
        if ranks := [rank for rank in ranking if rank.model == title]:
            yield _ranking(ranks)
    if by_model and len(set(titles)) > 1:
        yield _tally(verdicts)


def _verdicts(title: str, verdicts: Sequence[tuple[str, Verdict]], column: str) -> Table:
    table = Table(title=Text(f"Verdicts: {title}"), title_justify="left", box=box.SIMPLE_HEAD)
    scored = any(verdict.scores for _, verdict in verdicts)
    table.add_column(column, no_wrap=column == "claim")
    table.add_column("verdict", no_wrap=True)
    table.add_column("because (score: 0 = chance, 1 = the claim)" if scored else "because")
    for label, verdict in verdicts:
        table.add_row(Text(label), word_text(verdict.word), Text(verdict.reason))
    return table


def _scores(title: str, verdicts: Sequence[tuple[str, Verdict]]) -> Table:
    table = Table(title=Text(f"Measures and their references: {title}"), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("measure", no_wrap=True)
    for name in ("observed", "best null", "planted", "score", "power"):
        table.add_column(name, justify="right", no_wrap=True)
    for label, verdict in verdicts:
        if verdict.scores:
            table.add_row(Text(label, style="bold"))
        for place, entry in enumerate((*verdict.scores, *verdict.shown)):
            decides = place < len(verdict.scores)
            name = entry.measure if decides else f"({entry.measure})"
            power = "–" if entry.auc is None else f"{entry.auc:.2f}" + ("" if entry.has_power else " no power")
            table.add_row(
                f"  {name}",
                _number(entry.observed),
                f"{_number(entry.null)} {(entry.null_name or '')}".strip(),
                _number(entry.planted),
                _score(entry) if entry.has_power else "–",
                power,
                style="" if decides and entry.has_power else "dim",
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
        cells = [_score(one) for one in entry.scores]
        table.add_row(Text(entry.theory), _number(entry.mean), *cells, word_text(entry.word))
    return table


def _tally(verdicts: Sequence[Verdict]) -> Table:
    table = Table(title="Number of models by verdict", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("claim", no_wrap=True)
    words = [word for word in VerdictWord if any(verdict.word is word for verdict in verdicts)]
    for word in words:
        table.add_column(word.value, justify="right")
    for claim in dict.fromkeys(verdict.claim for verdict in verdicts):
        counts = Counter(verdict.word for verdict in verdicts if verdict.claim == claim)
        table.add_row(claim, *(str(counts[word]) for word in words))
    return table


def _legend(
    kind: RecordKind, verdicts: Sequence[Verdict], ranking: Sequence[Rank], levels: Mapping[str, float]
) -> Text:
    """The meanings of the words, as their claims define them, and the kind of intervals."""
    text = Text()
    said = [(v.word, _meanings(v.claim, kind)) for v in verdicts]
    said += [(rank.word, MEANINGS[kind]) for rank in ranking]
    for word, meaning in dict.fromkeys((word, meanings[word]) for word, meanings in said):
        text.append_text(word_text(word)).append(f": {meaning}.\n")
    own = {levels[claim]: None for claim in dict.fromkeys(v.claim for v in verdicts) if claim in levels}
    at = f" at {' and '.join(f'{level:.2%}' for level in own)}" if own else ""
    return text.append(f"Intervals: {_INTERVALS[kind]}{at}, so that all hold jointly with 95 % (Bonferroni).", "dim")


def _meanings(claim: str, kind: RecordKind) -> Mapping[VerdictWord, str]:
    """A claim's own, unless it is the user's, or was judged on another kind of record than it reads first."""
    known = CLAIMS.get(claim)
    return MEANINGS[kind] if known is None or known.reads[0] is not kind else known.meanings


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _score(score: Score) -> str:
    """A score with its interval."""
    if score.mean is None:
        return "–"
    return f"{score.mean:.2f}" + (
        "" if score.interval is None else f" [{score.interval[0]:.2f}, {score.interval[1]:.2f}]"
    )
