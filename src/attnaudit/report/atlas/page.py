"""What the page over all models says: the answer, verdicts by number, and theories by field, size and depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from attnaudit.display import counted
from attnaudit.records.verdict import Finding, Rank, Verdict, VerdictWord
from attnaudit.report.atlas.audits import AtlasAudit, AtlasFailure, claims_of, is_baseline, theories_of
from attnaudit.report.verdict_cards import sentence
from attnaudit.sources.catalogue import FIELDS

#: Kinds of verdicts that are counted.
TALLIED = (VerdictWord.SUPPORTED.value, "in some heads", VerdictWord.REFUTED.value, VerdictWord.UNDECIDED.value)
#: Names of the sizes of models, and the most heads of each.
_SIZES = {"up to 32 heads": 32, "33 to 64": 64, "65 to 96": 96, "more": None}
#: Parts of equal length into which the depth of a model is cut.
_DEPTHS = ("first fifth", "second", "middle", "fourth", "last fifth")


@dataclass(frozen=True)
class MeanCell:
    """A mean over `count` models or layers; None if there is none."""

    mean: float | None
    count: int


@dataclass(frozen=True)
class AtlasPage:
    """Everything the page shows."""

    audits: Sequence[AtlasAudit]
    failures: Sequence[AtlasFailure]

    @property
    def claims(self) -> list[str]:
        """Columns of the first table."""
        return claims_of(self.audits)

    @property
    def theories(self) -> list[str]:
        """Columns of the second table."""
        return theories_of(self.audits)

    @property
    def fields(self) -> dict[str, int]:
        """The fields that there are, and how many models each has."""
        counts = Counter(audit.entry.field for audit in self.audits)
        return {name: counts[name] for name in sorted(counts, key=lambda own: (*FIELDS, own).index(own))}

    @property
    def levels(self) -> dict[str, str]:
        """The confidence of the intervals of claims and of theories, in words."""
        claims = [
            own.summary.levels[claim] for own in self.audits for claim in self.claims if claim in own.summary.levels
        ]
        return {"claims": _percent(claims), "theories": _percent([own.ranking_level for own in self.audits])}

    @property
    def heads(self) -> int:
        """Of all models."""
        return sum(audit.heads for audit in self.audits)

    def tally(self, claim: str) -> dict[str, int]:
        """How many models have which verdict on a claim."""
        found = Counter(tallied(own) for audit in self.audits if (own := audit.verdicts.get(claim)) is not None)
        return {kind: found[kind] for kind in TALLIED}

    def statement(self, claim: str) -> str:
        """What a claim says, with its source."""
        words = next(audit.summary.claims[claim] for audit in self.audits if claim in audit.summary.claims)
        return f"{words.statement} ({words.citation})" if words.citation else words.statement

    def theorems(self) -> dict[str, str]:
        """Claims that are impossible for every network, and why, without what was measured in one of them."""
        found = [own for audit in self.audits for own in audit.verdicts.values() if own.of_every_network]
        return {own.claim: sentence(own.reason.partition("; ")[0]) for own in found}

    def by_field(self, theory: str) -> list[MeanCell]:
        """The mean score of a theory over the models of each field that decide it."""
        return [self._mean_score(theory, [own for own in self.audits if own.entry.field == f]) for f in self.fields]

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the sizes that some model has."""
        return tuple(name for name, own in self._sized.items() if own)

    def by_size(self, theory: str) -> list[MeanCell]:
        """The mean score of a theory over the models with so many heads that decide it."""
        return [self._mean_score(theory, own) for own in self._sized.values() if own]

    @property
    def _sized(self) -> dict[str, list[AtlasAudit]]:
        found: dict[str, list[AtlasAudit]] = {name: [] for name in _SIZES}
        for audit in self.audits:
            found[next(name for name, most in _SIZES.items() if most is None or audit.heads <= most)].append(audit)
        return found

    @staticmethod
    def _mean_score(theory: str, audits: Sequence[AtlasAudit]) -> MeanCell:
        ranks = [audit.decided[theory] for audit in audits if theory in audit.decided]
        return _mean([own.mean for own in ranks if own.mean is not None])

    @property
    def depths(self) -> tuple[str, ...]:
        """Names of the parts of a model, from its first layer to its last."""
        return _DEPTHS

    def by_depth(self, theory: str) -> list[MeanCell]:
        """The mean score of a theory over layers at a depth; a model that decides it counts as much as its layers."""
        parts: list[list[float]] = [[] for _ in _DEPTHS]
        for rank in self._ranks(theory):
            last = max((own.layer for own in rank.layers), default=0)
            for own in rank.layers:
                place = own.layer / last if last else 0.0
                parts[min(int(place * len(_DEPTHS)), len(_DEPTHS) - 1)].append(own.score.mean)
        return [_mean(own) for own in parts]

    def _ranks(self, theory: str) -> Iterator[Rank]:
        return (audit.decided[theory] for audit in self.audits if theory in audit.decided)

    @property
    def answers(self) -> list[str]:
        """The answer, in a sentence on claims and one on theories."""
        return [text for text in (self._claims_answer(), self._theories_answer()) if text]

    def _claims_answer(self) -> str:
        counts = {claim: self.tally(claim) for claim in self.claims}
        if not counts:
            return ""
        whole, partly = (
            [f"{claim} ({counted(own[kind], 'model')})" for claim, own in counts.items() if own[kind]]
            for kind in TALLIED[:2]
        )
        found = f"{len(whole)} are supported for whole models: {', '.join(whole)}"
        heads = f"; in some heads: {', '.join(partly)}" if partly else ""
        return (
            f"Of {counted(len(counts), 'claim')} about attention in {counted(len(self.audits), 'model')}, "
            f"{found if whole else 'none is supported for a whole model'}{heads}."
        )

    def _theories_answer(self) -> str:
        ranks = {name: list(self._ranks(name)) for name in self.theories if not is_baseline(name)}
        placed = {name: [own for own in found if own.place is not None] for name, found in ranks.items()}
        best = max(placed, key=lambda name: len(placed[name]), default=None)
        if best is None or not placed[best]:
            return "Every theory of the values is at chance in every model." if ranks else ""
        mean = sum(own.mean or 0.0 for own in placed[best]) / len(placed[best])
        return (
            f"The theory that explains most is {best}: above chance in {len(placed[best])} of "
            f"{counted(len(ranks[best]), 'model')} that decide it, with a mean score of {mean:.2f} there."
        )


def tallied(verdict: Verdict) -> str:
    """Which of the kinds that are counted a verdict is."""
    return TALLIED[1] if verdict.finding is Finding.IN_SOME_HEADS else verdict.word.value


def _percent(levels: Sequence[float]) -> str:
    """One level or a range of them, such as `95 % to 98.3 %`."""
    return " to ".join(dict.fromkeys(f"{100 * level:.4g} %" for level in (min(levels), max(levels)))) if levels else ""


def _mean(numbers: Sequence[float]) -> MeanCell:
    return MeanCell(sum(numbers) / len(numbers) if numbers else None, len(numbers))
