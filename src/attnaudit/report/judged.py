"""Verdicts about training and robustness, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnaudit.claims import robustness, training
from attnaudit.claims.registry import ROBUSTNESS_CLAIMS
from attnaudit.records.verdict import Verdict, Word
from attnaudit.report.verdicts import legend, word_text


def judged_verdicts(verdicts: Sequence[Verdict]) -> RenderableType:
    """A table per claim, a line per subject; then what the words mean, of trainings and of evaluations."""
    held = [verdict for verdict in verdicts if verdict.claim in ROBUSTNESS_CLAIMS]
    learnt = [verdict for verdict in verdicts if verdict.claim not in ROBUSTNESS_CLAIMS]
    return Group(
        *_explained(learnt, "widened for every subject of a claim", training.MEANINGS),
        *_explained(held, "widened for every difference of a claim", robustness.MEANINGS),
    )


def _explained(verdicts: Sequence[Verdict], intervals: str, meanings: Mapping[Word, str]) -> list[RenderableType]:
    if not verdicts:
        return []
    tables = [_table(claim, verdicts) for claim in dict.fromkeys(verdict.claim for verdict in verdicts)]
    words = list(dict.fromkeys(verdict.word for verdict in verdicts))
    return [*tables, legend(words, intervals, meanings)]


def _table(claim: str, verdicts: Sequence[Verdict]) -> Table:
    table = Table(title=f"Verdicts: {claim}", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("subject")
    table.add_column("verdict", no_wrap=True)
    table.add_column("because")
    for verdict in verdicts:
        if verdict.claim == claim:
            table.add_row(Text(verdict.model), word_text(verdict.word), Text(verdict.reason))
    return table
