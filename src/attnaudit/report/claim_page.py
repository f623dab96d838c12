"""A claim to read, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attnaudit.claims.claim import SHOWN_ON, Claim
from attnaudit.claims.meanings import RecordKind
from attnaudit.claims.registry import CLAIMS
from attnaudit.errors import unknown


def claim_named(name: str) -> Claim:
    """The claim of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in CLAIMS:
        raise unknown("claim", name, CLAIMS)
    return CLAIMS[name]


def claim_page(claim: Claim) -> RenderableType:
    """Everything that a claim says of itself, for the terminal."""
    grid = Table.grid(padding=(0, 2, 1, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    for name, text in claim_lines(claim):
        grid.add_row(name, Text(text))
    return Group(Text(claim.name, style="bold underline"), Padding(grid, (1, 0, 0, 0)))


def claim_lines(claim: Claim) -> Iterator[tuple[str, str]]:
    """The same by name."""
    yield "statement", claim.statement
    yield "source", claim.citation
    yield "formula", claim.formula
    yield "rule", claim.rule
    if claim.limits:
        yield "does not say", claim.limits
    yield "decided by", ", ".join(claim.decided_by)
    if claim.shown:
        yield "shown beside", ", ".join(claim.shown) + (f"\n({SHOWN_ON})" if RecordKind.AUDIT in claim.reads else "")
    if RecordKind.AUDIT in claim.reads:
        yield "theory", claim.theory
    yield "reads", " or ".join(claim.reads)
    yield "needs", claim.needs
    yield "judged by", claim.command
    yield "verdicts", "\n".join(f"{word.value}: {meaning}" for word, meaning in claim.meanings.items())
