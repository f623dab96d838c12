"""A page for every claim, made from its file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from attnaudit.claims.claim import SHOWN_ON, Claim
from attnaudit.claims.meanings import RecordKind
from attnaudit.claims.registry import CLAIMS
from attnaudit.measures import MEASURES
from attnaudit.theories import PRIMAL_SVD, THEORIES
from website.navigation import title

_THEORIES = {theory.name: theory.text for theory in THEORIES.values()} | {PRIMAL_SVD.name: PRIMAL_SVD.text}


def claim_pages(results: Path) -> dict[str, str]:
    """The pages by path: one per claim, which links to the pages below `results` that name it, and a list of all."""
    found = {page: page.read_text() for page in sorted(results.rglob("*.md"))}
    pages = {"claims/index.md": _index(list(CLAIMS.values()))}
    for claim in CLAIMS.values():
        naming = [page for page, text in found.items() if claim.name in text]
        pages[f"claims/{claim.name}.md"] = _page(claim, [(title(page), page.relative_to(results)) for page in naming])
    return pages


def _index(claims: Sequence[Claim]) -> str:
    rows = [f"| [{c.name}]({c.name}.md) | {_cell(c.statement)} | {_cell(c.citation)} |" for c in claims]
    return "\n".join(
        (
            "# Claims",
            "",
            "What attnaudit puts to the test. Each page is made from the claim's file in `src/attnaudit/claims`.",
            "[From evidence to a verdict](../theory/verdicts.md) says how scores become words, and",
            "[a claim of your own](../tutorial/own-claim.md) how to add one.",
            "",
            "| claim | statement | source |",
            "| --- | --- | --- |",
            *rows,
            "",
        )
    )


def _page(claim: Claim, results: Sequence[tuple[str, Path]]) -> str:
    lines = [f"# {claim.name}", "", f"> {escape(claim.statement)}", "", f"**Source.** {escape(claim.citation)}.", ""]
    lines += ["**Formula.**", "", "```text", claim.formula, "```", ""]
    lines += [f"**Rule.** {escape(claim.rule, quote=False)}", ""]
    if RecordKind.AUDIT in claim.reads:
        lines += [f"**Compared with** `{claim.theory}`: {escape(_THEORIES[claim.theory])}.", ""]
    lines += _measures("Decided by", claim.decided_by)
    lines += _measures("Shown beside", claim.shown)
    if claim.shown and RecordKind.AUDIT in claim.reads:
        lines += [f"{SHOWN_ON[0].upper()}{SHOWN_ON[1:]}.", ""]
    if claim.limits:
        lines += [f"**But.** {escape(claim.limits, quote=False)}", ""]
    lines += ["## What the findings mean", "", "| finding | meaning |", "| --- | --- |"]
    lines += [*(f"| {finding.value} | {_cell(meaning)} |" for finding, meaning in claim.meanings.items()), ""]
    lines += ["## Command", "", f"It needs {escape(claim.needs)}.", "", "```console", f"$ {claim.command}", "```", ""]
    if results:
        lines += ["## Results", "", *(f"- [{name}](../results/{path.as_posix()})" for name, path in results), ""]
    return "\n".join(lines)


def _measures(heading: str, names: Sequence[str]) -> list[str]:
    """A table of measures; or a list of what the rule of a claim explains."""
    known = [MEASURES[name] for name in names if name in MEASURES]
    lines = [f"## {heading}", ""] if names else []
    if known:
        lines += ["| measure | what it is | closer | ideal |", "| --- | --- | --- | --- |"]
        lines += [f"| `{m.name}` | {_cell(m.text)} | {m.closer} | {_ideal(m.ideal)} |" for m in known]
        lines.append("")
    if others := [name for name in names if name not in MEASURES]:
        lines += [*(f"- {_cell(name)}" for name in others), ""]
    return lines


def _ideal(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _cell(text: str) -> str:
    """Text in a table, where a bar would end the cell."""
    return escape(text, quote=False).replace("|", "&#124;").replace("*", "&#42;").replace("_", "&#95;")
