"""A verdict on an audited model to read: what was claimed, what was found, how sure it is, and what it does not say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attnaudit.claims.meanings import MEANINGS, RecordKind
from attnaudit.claims.registry import CLAIMS
from attnaudit.measures.references.random_projection import RANDOM_PROJECTION
from attnaudit.measures.references.rotated import ROTATED
from attnaudit.records.audit_summary import ClaimWords, ReferenceWords
from attnaudit.records.verdict import Finding, Score, Verdict, VerdictWord
from attnaudit.theories.registry import THEORIES

_COLOURS = {
    VerdictWord.SUPPORTED: "green",
    VerdictWord.REFUTED: "red",
    VerdictWord.UNDECIDED: "yellow",
}


#: What score 0 mostly is; other nulls are named by their own words.
_USUAL = {RANDOM_PROJECTION.name: "a random projection of the same inputs"}
_TURNED = (
    "The head's values turned at random: the inputs of these layers are not known. Any projection of them would be "
    "closer to the claim than that, so being above chance says little here."
)


def verdict_text(word: VerdictWord, words: str | None = None) -> Text:
    """A verdict in its colour."""
    return Text(words or word.value, style=_COLOURS[word])


def verdict_title(verdict: Verdict) -> str:
    """Word and finding as the title of a card, such as `refuted: at chance`."""
    if verdict.word is VerdictWord.SUPPORTED:
        return verdict.words
    return f"{verdict.word}: {verdict.finding}"


def claim_words(claim: str) -> ClaimWords:
    """What a claim of ours says of itself; users' own claims come with their run."""
    known = CLAIMS.get(claim)
    return ClaimWords("", "", "") if known is None else known.words


def finding_meanings(claim: str, kind: RecordKind) -> Mapping[Finding, str]:
    """A claim's own, unless it is the user's; its name for a finding that has no words there."""
    known = CLAIMS.get(claim)
    own = MEANINGS[kind] if known is None or kind not in known.reads else known.meanings
    return {**{finding: finding.value for finding in Finding}, **own}


def sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    return text and f"{text[0].upper()}{text[1:].removesuffix('.')}."


def null_words(verdicts: Iterable[Verdict], references: Mapping[str, ReferenceWords]) -> str:
    """What score 0 is in these verdicts; empty if they have no scores."""
    nulls = dict.fromkeys(score.null for verdict in verdicts for score in verdict.scores if score.null is not None)
    return " or ".join(_USUAL.get(name) or (references[name].text if name in references else name) for name in nulls)


def independent_inputs(verdicts: Iterable[Verdict]) -> int:
    """How many inputs count, those that belong together as one; 0 if no score says so."""
    return max((score.inputs for verdict in verdicts for score in verdict.scores), default=0)


def chance_words(verdict: Verdict) -> str:
    """What is to be kept in mind where score 0 is not a random projection of the inputs, because they are not known."""
    own = getattr(THEORIES.get(claim_words(verdict.claim).theory), "nulls", ("",))
    if own[0] == ROTATED.name:  # its null by choice
        return ""
    return _TURNED if any(score.null == ROTATED.name for score in verdict.scores) else ""


def limits_of(verdict: Verdict, words: ClaimWords) -> str:
    """What the verdict does not say; a theorem about these heads needs no such words."""
    return "" if verdict.finding is Finding.IMPOSSIBLE and verdict.heads else words.limits


def verdict_card(verdict: Verdict, words: ClaimWords, meanings: Mapping[Finding, str]) -> RenderableType:
    """One verdict, with a line for each question that a reader has."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, text in _lines(verdict, words, meanings):
        grid.add_row(name, Text(text))
    title = Text(f"{verdict.claim}: ", style="bold").append_text(verdict_text(verdict.word, verdict.words))
    return Group(title, Padding(grid, (0, 0, 1, 2)))


def _lines(verdict: Verdict, words: ClaimWords, meanings: Mapping[Finding, str]) -> Iterator[tuple[str, str]]:
    if words.statement:
        yield "claimed", f"{words.statement} ({words.citation})" if words.citation else words.statement
    yield "found", f"{sentence(meanings[verdict.finding])} {sentence(verdict.reason)}".rstrip()
    if chance := chance_words(verdict):
        yield "chance", chance
    if reach := "; ".join(_reach(score) for score in verdict.scores if score.reach is not None):
        yield "at best", f"A projection of the inputs that was fitted to the claim on half of them scores {reach}."
    if gauges := "; ".join(_gauges(score) for score in verdict.scores if score.gauges is not None):
        yield "gauges", f"With other weights that compute the same, mean scores range from {gauges}."
    if limits := limits_of(verdict, words):
        yield "but", limits


def _reach(score: Score) -> str:
    upper = "" if score.fitted_reach is None else f", {score.fitted_reach} on its own half"
    share = "" if score.realised is None else f", of which the observed values realise {score.realised}"
    return f"{score.reach} on the other half{upper}{share} ({score.measure})"


def _gauges(score: Score) -> str:
    assert score.gauges is not None
    return f"{score.gauges[0]:z.2f} to {score.gauges[1]:z.2f} ({score.measure})"
