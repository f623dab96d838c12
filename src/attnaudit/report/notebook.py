"""An audit in a notebook: the answers, then the verdicts with their scores on a scale; everything is escaped."""

from __future__ import annotations

from html import escape

from attnaudit.display import shortened
from attnaudit.records.audit import AuditRun
from attnaudit.records.verdict import Score, Verdict, VerdictWord
from attnaudit.report.answers import answers
from attnaudit.report.verdict_cards import verdict_title

#: Readable on light and on dark paper, because a notebook does not say which it has.
_COLOURS = {VerdictWord.SUPPORTED: "#0a9468", VerdictWord.REFUTED: "#d2601a", VerdictWord.UNDECIDED: "#a8820c"}
_LEFT = "text-align:left;vertical-align:top"


def notebook_view(run: AuditRun) -> str:
    """The HTML that a notebook shows for a run."""
    said = "".join(
        f"<p style='font-size:1.15em'><b><bdi>{escape(text)}</bdi></b></p>" for text in answers(run).values()
    )
    several = len(run.models) > 1
    counts = any(verdict.heads for verdict in run.verdicts)
    rows = "".join(_row(verdict, several=several, counts=counts) for verdict in run.verdicts)
    columns = [*(["model"] if several else []), "verdict", *(["heads"] if counts else [])]
    names = ["claim", *columns, "score: 0 is chance, 1 the claim"]
    head = "".join(f"<th style='{_LEFT}'>{name}</th>" for name in names)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""
    folder = f"{run.heads.words} in {run.path}; run.report() writes a page to look at."
    return f"<div>{said}{table}<p><small><bdi>{escape(folder)}</bdi></small></p></div>"


def _row(verdict: Verdict, *, several: bool, counts: bool) -> str:
    word = f"<b style='color:{_COLOURS[verdict.word]}'>{escape(verdict_title(verdict))}</b>"
    heads = f"{verdict.satisfying} of {verdict.heads}" if verdict.heads else ""
    scores = "".join(_scored(own, _COLOURS[verdict.word]) for own in verdict.scores if own.score is not None)
    model = [f"<bdi>{escape(shortened(verdict.model))}</bdi>"] if several else []
    cells = [*model, word, *([heads] if counts else []), scores or escape(shortened(verdict.reason))]
    name = f"<th scope='row' style='{_LEFT}'>{escape(shortened(verdict.claim))}</th>"
    return f"<tr>{name}{''.join(_cell(cell) for cell in cells)}</tr>"


def _cell(content: str) -> str:
    return f"<td style='{_LEFT}'>{content}</td>"


def _scored(own: Score, colour: str) -> str:
    """A score on a scale from 0 to 1, at its end if it lies outside, and in numbers."""
    assert own.score is not None
    place = 100 * min(max(own.score.mean, 0.0), 1.0)
    mark = f"<i style='position:absolute;left:{place:.0f}%;top:-4px;width:3px;height:9px;background:{colour}'></i>"
    line = "display:inline-block;position:relative;width:90px;height:1px;background:currentColor;vertical-align:middle"
    return f"<div><span style='{line}'>{mark}</span>&ensp;{own.score} {escape(shortened(own.measure))}</div>"
