"""A card for a model: what an audit found, as text that fits into a model card of a hub, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnaudit.display import counted, without_folders
from attnaudit.records import json_file
from attnaudit.records.files import write_whole
from attnaudit.records.verdict import MeanEstimate, Rank, Score, Verdict
from attnaudit.report.atlas.audits import AtlasAudit
from attnaudit.statistics.decisions import decides

CARD, TEXT = "card.json", "card.md"


@dataclass(frozen=True)
class CardScore:
    """A score from 0, chance, to 1, the claim or theory itself, with its interval over independent inputs."""

    measure: str
    mean: float
    interval: tuple[float, float] | None
    inputs: int
    decides: bool


@dataclass(frozen=True)
class CardClaim:
    """A claim, the verdict on it, and the scores behind that; `level` is the confidence of their intervals."""

    claim: str
    statement: str
    citation: str
    word: str
    finding: str
    words: str
    reason: str
    satisfying: int
    heads: int
    level: float | None
    scores: tuple[CardScore, ...]


@dataclass(frozen=True)
class CardTheory:
    """A theory by the measure that says least of it; `place` is None for one at chance or true by construction."""

    theory: str
    place: int | None
    finding: str
    above_chance: int
    heads: int
    score: CardScore | None


@dataclass(frozen=True)
class Card:
    """All that a reader of a model card needs to know, and to repeat it.

    `replay_error` is the certificate: the largest difference between what the attention layers computed and what was
    captured of them.
    """

    model: str
    field: str
    architecture: str
    licence: str
    hub: str | None
    weights: str
    fingerprint: str
    notes: tuple[str, ...]
    attention: tuple[str, ...]
    layers: int
    heads: int
    inputs: int
    replay_error: float | None
    refused_layers: tuple[tuple[str, str], ...]
    claims: tuple[CardClaim, ...]
    theories: tuple[CardTheory, ...]
    protocol: str
    seed: int
    attnaudit: str
    versions: Mapping[str, str]
    command: str
    seconds: float | None


def card(audit: AtlasAudit, command: str) -> Card:
    """The card of a model; `command` repeats its audit."""
    settings, summary, entry = audit.settings, audit.summary, audit.entry
    return Card(
        model=entry.name,
        field=entry.field,
        architecture=entry.architecture,
        licence=entry.licence,
        hub=entry.hub,
        weights=without_folders(settings.weights.get(audit.label, "unknown")),
        fingerprint=dict(settings.identity.models).get(audit.label, "unknown"),
        notes=tuple(settings.loading.get(audit.label, ())),
        attention=tuple(settings.kinds_of_attention),
        layers=audit.layers,
        heads=audit.heads,
        inputs=audit.inputs,
        replay_error=summary.capture.replay_error,
        refused_layers=summary.capture.refused_layers,
        claims=tuple(_claim(audit, own) for own in audit.verdicts.values()),
        theories=tuple(map(_theory, audit.ranking.values())),
        protocol=settings.identity.settings.protocol.value,
        seed=settings.identity.settings.seed,
        attnaudit=settings.attnaudit,
        versions=settings.versions,
        command=command,
        seconds=audit.seconds,
    )


def _claim(audit: AtlasAudit, verdict: Verdict) -> CardClaim:
    words = audit.summary.claims[verdict.claim]
    return CardClaim(
        *(verdict.claim, words.statement, words.citation),
        *(verdict.word.value, verdict.finding.value, verdict.words, verdict.reason),
        *(verdict.satisfying, verdict.heads, audit.summary.levels.get(verdict.claim)),
        scores=tuple(found for own in verdict.scores if (found := _score(own)) is not None),
    )


def _theory(rank: Rank) -> CardTheory:
    least = None if rank.least is None else _score(rank.least)
    return CardTheory(rank.theory, rank.place, rank.finding.value, rank.above_chance, rank.heads, least)


def _score(score: Score) -> CardScore | None:
    if score.score is None:
        return None
    return CardScore(score.measure, score.score.mean, score.score.interval, score.inputs, decides(score))


def write_card(audit: AtlasAudit, command: str, folder: Path) -> None:
    """Write `card.json` and `card.md`."""
    own = card(audit, command)
    json_file.write(folder / CARD, own)
    write_whole(folder / TEXT, card_text(own).encode("utf-8", "replace"))


def read_card(folder: Path) -> Card:
    """The card that was written into a folder.

    Raises:
        FileNotFoundError: there is none.
        RunFolderError: it is damaged.
    """
    return json_file.read(Card, folder / CARD, "the card of an audited model")


def card_text(own: Card) -> str:
    """The card as Markdown, from a heading of the second level on."""
    return "\n\n".join(_paragraphs(own)) + "\n"


def _paragraphs(own: Card) -> Iterator[str]:
    yield "## Attention audit"
    yield (
        f"What papers claim about self-attention, tested on {counted(own.heads, 'head')} of {_plain(own.model)} in "
        f"{counted(own.layers, 'layer')}, on {counted(own.inputs, 'independent input')}, with attnaudit "
        f"{own.attnaudit} (protocol {own.protocol}, seed {own.seed}). A score is 0 at chance and 1 if the claim is "
        "true."
    )
    claims = [
        (
            f"`{claim.claim}`: {_plain(claim.statement)} ({_plain(claim.citation)})",
            f"**{_plain(claim.words)}**",
            _claim_score(claim),
        )
        for claim in own.claims
    ]
    if claims:
        yield _table(("claim", "verdict", "score"), claims)
    theories = [
        (
            _plain(theory.theory),
            "–" if theory.score is None else _number(theory.score),
            f"{theory.above_chance} of {theory.heads}" if theory.heads else "–",
            _plain(theory.finding),
        )
        for theory in own.theories
    ]
    if theories:
        yield _table(("theory of the values", "score", "heads above chance", "finding"), theories)
    if claims and theories:
        yield (
            "Intervals of a claim hold for all of its measures together, those of theories for all theories together, "
            "and are wider: a theory may be partial as a claim and at chance here."
        )
    certificate = "missing" if own.replay_error is None else f"{own.replay_error:.1e}"
    refused = f"; {counted(len(own.refused_layers), 'layer')} refused" if own.refused_layers else ""
    yield (
        f"Capture certificate: replay error {certificate}{refused}. Weights: {_plain(own.weights)} (fingerprint "
        f"`{own.fingerprint[:16]}`). Versions: "
        f"{', '.join(f'{_plain(name)} {_plain(version)}' for name, version in own.versions.items())}."
    )
    yield f"To repeat it:\n\n```sh\n{own.command}\n```"


def _claim_score(claim: CardClaim) -> str:
    deciding = [own for own in claim.scores if own.decides] or list(claim.scores)
    least = min(deciding, key=lambda own: own.mean, default=None)
    return "–" if least is None else _number(least)


def _number(score: CardScore) -> str:
    return f"{MeanEstimate(score.mean, score.interval)} ({_plain(score.measure)})"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """A text that Markdown shows as it is: no markup, no HTML, no end of a cell."""
    kept = " ".join(text.split())
    for sign in "\\`*_[]<>|#":
        kept = kept.replace(sign, f"\\{sign}" if sign not in "<>" else {"<": "&lt;", ">": "&gt;"}[sign])
    return kept
