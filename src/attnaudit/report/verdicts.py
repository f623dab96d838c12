"""Verdicts for the terminal, for all kinds of records: the scores behind them, and the meaning of their words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnaudit import defaults
from attnaudit.claims.meanings import RecordKind
from attnaudit.claims.registry import CLAIMS
from attnaudit.display import counted, enumerated
from attnaudit.records.audit import AuditRun
from attnaudit.records.verdict import Verdict, VerdictWord
from attnaudit.report.answers import answers
from attnaudit.report.score_tables import ranking_table, score_table, tally_table
from attnaudit.report.verdict_cards import (
    claim_words,
    finding_meanings,
    independent_inputs,
    null_words,
    verdict_card,
    verdict_text,
)

#: The kind of interval for each kind of record.
_INTERVALS = {
    RecordKind.AUDIT: "over independent inputs, Student's t corrected for skewness",
    RecordKind.TRAINING: "over inputs, or Student's t over seeds",
    RecordKind.EVALUATION: "Student's t over seeds",
    RecordKind.LABORATORY: "over independent repetitions, Student's t corrected for skewness",
    RecordKind.COST: "Student's t over repeats of a pass",
}
_SCALE = (
    "Scores: 0 is chance{null}; 1 is the claim itself. A claim is supported at "
    "{threshold:g} or above, and counts as at chance up to {chance:g}. Counts of heads control the false discovery "
    "rate at 5 %."
)


def audit_report(run: AuditRun, *, details: bool = False, wide: bool = False) -> RenderableType:
    """The answer in a sentence per model; then the verdicts, a card for each, theorems once, and theories compared.

    Args:
        run: the audit.
        details: whether every measure is shown with its references.
        wide: whether tables have all of their columns, even if they need more than 80 characters.
    """
    parts: list[RenderableType] = [Text(text, style="bold") for text in answers(run).values()]
    parts.append(Text())
    theorems = {verdict.claim: verdict for verdict in run.verdicts if verdict.of_every_network}
    measured = [verdict for verdict in run.verdicts if not verdict.of_every_network]

    def card(verdict: Verdict) -> RenderableType:
        words = run.summary.claims.get(verdict.claim) or claim_words(verdict.claim)
        return verdict_card(verdict, words, finding_meanings(verdict.claim, RecordKind.AUDIT))

    kinds = [Text(f"Attention: {'; '.join(found)}")] if (found := run.settings.kinds_of_attention) else []
    for model in run.models:
        own = [verdict for verdict in measured if verdict.model == model]
        if own:
            title = Text(f"{model}{_size(own)}", style="bold underline")
            parts += [title, *kinds, *_counts([*own, *theorems.values()]), Text(), *map(card, own)]
        if details and any(verdict.scores for verdict in own):
            parts.append(score_table(model, [(verdict.claim, verdict) for verdict in own], wide=wide))
        if ranks := [rank for rank in run.ranking if rank.model == model]:
            parts.append(ranking_table(ranks, wide=wide))
    if len({verdict.model for verdict in measured}) > 1:
        parts.append(tally_table(measured))
    if theorems:
        parts += [Text("By theorem, for every network", style="bold underline"), Text(), *map(card, theorems.values())]
    threshold, chance = run.summary.threshold, run.summary.chance
    null = null_words(run.verdicts, run.summary.references)
    scale = _SCALE.format(
        null=null and f", {null}",
        threshold=defaults.THRESHOLD if threshold is None else threshold,
        chance=defaults.CHANCE if chance is None else chance,
    )
    footer = [Text(scale, "dim"), *_glossary(run), _intervals(RecordKind.AUDIT, run.verdicts, run.levels)]
    return Group(*parts, *footer)


def _counts(verdicts: Sequence[Verdict]) -> Iterator[Text]:
    """The answer in a line for each word."""
    for word in VerdictWord:
        if own := [f"{verdict.claim} ({verdict.finding})" for verdict in verdicts if verdict.word is word]:
            yield verdict_text(word).append(f": {', '.join(own)}", "default")


def _glossary(run: AuditRun) -> Iterator[Text]:
    """What the measures behind the verdicts are."""
    names = dict.fromkeys(score.measure for verdict in run.verdicts for score in verdict.scores)
    words = {name: run.summary.measures[name].text for name in names if name in run.summary.measures}
    if words:
        yield Text(f"Measures: {'; '.join(f'{name} is the {text}' for name, text in words.items())}.", "dim")


def _size(verdicts: Sequence[Verdict]) -> str:
    """How much the verdicts on a model rest on."""
    heads = max(verdict.heads for verdict in verdicts)
    inputs = independent_inputs(verdicts)
    return f": {counted(heads, 'head')}, {counted(inputs, 'independent input')}" if heads else ""


def verdict_report(verdicts: Sequence[Verdict], levels: Mapping[str, float], *, wide: bool = False) -> RenderableType:
    """By kind of record and claim: the verdicts, the scores behind them, and the meaning of the words.

    Args:
        verdicts: on trainings, evaluations, laboratory experiments or costs.
        levels: the confidence level of the intervals of each claim.
        wide: whether tables have all of their columns.
    """
    by_kind: dict[RecordKind, list[Verdict]] = {}
    for verdict in verdicts:
        by_kind.setdefault(CLAIMS[verdict.claim].reads[0], []).append(verdict)
    parts: list[RenderableType] = []
    for kind, own in by_kind.items():
        parts += [*_tables(own, wide=wide), _legend(kind, own, levels)]
    return Group(*parts)


def _tables(verdicts: Sequence[Verdict], *, wide: bool) -> Iterator[RenderableType]:
    for claim in dict.fromkeys(verdict.claim for verdict in verdicts):
        own = [(verdict.model, verdict) for verdict in verdicts if verdict.claim == claim]
        if any(verdict.scores for _, verdict in own):
            yield score_table(claim, own, wide=wide)
        yield _verdicts(claim, own)
        if limits := CLAIMS[claim].limits:
            yield Text(limits, "dim")


def _verdicts(claim: str, verdicts: Sequence[tuple[str, Verdict]]) -> Table:
    table = Table(title=Text(f"{claim}: {CLAIMS[claim].statement}"), title_justify="left", box=box.SIMPLE_HEAD)
    scored = any(verdict.scores for _, verdict in verdicts)
    table.add_column("subject")
    table.add_column("verdict")
    table.add_column("because (score: 0 = chance, 1 = the claim)" if scored else "because")
    for label, verdict in verdicts:
        table.add_row(Text(label), verdict_text(verdict.word, verdict.words), Text(verdict.reason))
    return table


def _legend(kind: RecordKind, verdicts: Sequence[Verdict], levels: Mapping[str, float]) -> Text:
    """The meanings of the words, as their claims define them, and the kind of intervals."""
    text = Text()
    said = [(v.word, v.finding, finding_meanings(v.claim, kind)) for v in verdicts]
    for word, finding, meaning in dict.fromkeys((word, finding, own[finding]) for word, finding, own in said):
        text.append_text(verdict_text(word, f"{word}, {finding}")).append(f": {meaning}.\n")
    return text.append_text(_intervals(kind, verdicts, levels))


def _intervals(kind: RecordKind, verdicts: Sequence[Verdict], levels: Mapping[str, float]) -> Text:
    own = sorted({levels[verdict.claim] for verdict in verdicts if verdict.claim in levels})
    at = f" at {enumerated([f'{100 * level:.4g} %' for level in own], 'and')}" if own else ""
    return Text(f"Intervals: {_INTERVALS[kind]}{at}, so that those of a claim hold jointly with 95 %.", "dim")
