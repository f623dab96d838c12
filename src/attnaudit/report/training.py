"""Verdicts about training, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnaudit.claims.training import MEANINGS
from attnaudit.claims.verdict import Verdict
from attnaudit.report.verdicts import legend, word_text


def training_verdicts(verdicts: Sequence[Verdict]) -> RenderableType:
    """A table per claim, a line per subject; then what the words mean."""
    tables = []
    for claim in dict.fromkeys(verdict.claim for verdict in verdicts):
        table = Table(title=f"Verdicts: {claim}", title_justify="left", box=box.SIMPLE_HEAD)
        table.add_column("subject")
        table.add_column("verdict", no_wrap=True)
        table.add_column("because")
        for verdict in verdicts:
            if verdict.claim == claim:
                table.add_row(Text(verdict.model), word_text(verdict.word), Text(verdict.reason))
        tables.append(table)
    words = list(dict.fromkeys(verdict.word for verdict in verdicts))
    return Group(*tables, legend(words, "widened for every subject of a claim", MEANINGS))
