"""What an atlas keeps of each model: its summary and settings, but not its rows, of which there are too many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnaudit.records.audit_file import AuditFile
from attnaudit.records.audit_summary import AuditSummary
from attnaudit.records.verdict import BestTheory, Rank, Score, Verdict
from attnaudit.sources.catalogue import CatalogueEntry
from attnaudit.statistics.decisions import decides
from attnaudit.statistics.intervals import widened_level
from attnaudit.theories.registry import THEORIES


@dataclass(frozen=True)
class AtlasAudit:
    """The audit of one model; `label` is the model's name there, `seconds` what it took, if that is known."""

    entry: CatalogueEntry
    label: str
    settings: AuditFile
    summary: AuditSummary
    seconds: float | None = None

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """By claim."""
        return {own.claim: own for own in self.summary.verdicts if own.model == self.label}

    @property
    def ranking(self) -> dict[str, Rank]:
        """By theory, best first."""
        return {own.theory: own for own in self.summary.ranking if own.model == self.label}

    @property
    def decided(self) -> dict[str, Rank]:
        """The part of the ranking that rests on a deciding measure: what is counted and averaged over models."""
        return {name: own for name, own in self.ranking.items() if own.heads}

    @property
    def ranking_level(self) -> float:
        """The confidence of each interval of the ranking, so that those of all theories hold together."""
        return widened_level(sum(len(own.scores) for own in self.ranking.values()))

    @property
    def scores(self) -> dict[tuple[str, str], Score]:
        """By theory and measure: those by which theories are ranked, and others on which verdicts rest."""
        claims = self.summary.claims
        judged = {(claims[v.claim].theory, own.measure): own for v in self.verdicts.values() for own in v.scores}
        ranked = {(name, own.measure): own for name, rank in self.ranking.items() for own in rank.scores}
        return judged | ranked

    @property
    def heads(self) -> int:
        """How many there are by any claim or theory: heads may share values, so that some see fewer of them."""
        scored = {(own.layer, own.head) for score in self.scores.values() for own in score.heads}
        return max([len(scored), *(verdict.heads for verdict in self.verdicts.values())])

    @property
    def layers(self) -> int:
        """How many were captured."""
        return len(self.settings.certificates)

    @property
    def inputs(self) -> int:
        """How many independent ones there are."""
        return max((score.inputs for score in self.scores.values()), default=0)

    @property
    def best_head(self) -> BestTheory | None:
        """The head that is closest to any theory, by the lower end of its interval; None if all are at chance."""
        found = [own for own in self.summary.best_theories if own.model == self.label and own.theory is not None]
        return max(found, key=_certain, default=None)


def _certain(head: BestTheory) -> float:
    interval = None if head.score is None else head.score.interval
    return -1.0 if interval is None else interval[0]


@dataclass(frozen=True)
class AtlasFailure:
    """A model that could not be audited, and why."""

    entry: CatalogueEntry
    reason: str


def claims_of(audits: Sequence[AtlasAudit]) -> list[str]:
    """Every claim on which some model has a verdict, without those that a theorem decides for every network."""
    found = [own for audit in audits for own in audit.verdicts.values()]
    return list(dict.fromkeys(own.claim for own in found if not own.of_every_network))


def theories_of(audits: Sequence[AtlasAudit]) -> list[str]:
    """Every theory that was compared, the one with the largest scores above chance first, baselines last."""
    ranks = [own for audit in audits for own in audit.ranking.values()]
    placed: dict[str, float] = dict.fromkeys((own.theory for own in ranks), 0.0)
    for own in ranks:
        placed[own.theory] += own.mean or 0.0 if own.place is not None else 0.0
    return sorted(placed, key=lambda name: (is_baseline(name), -placed[name]))


def is_baseline(theory: str) -> bool:
    """Whether a theory is true by construction, so that it only shows how high others could come."""
    return bool(getattr(THEORIES.get(theory), "baseline", False))


def telling_score(verdict: Verdict) -> Score | None:
    """The deciding measure that says least of a claim; None if there is no score."""
    scored = [own for own in verdict.scores if own.score is not None]
    deciding = [own for own in scored if decides(own)] or scored
    return min(deciding, key=lambda own: own.score.mean if own.score else 0.0, default=None)
