"""A published statement, in words and numbers, and how it is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnaudit.measures import measure_named
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.verdict import Score, Verdict, Word
from attnaudit.statistics.decisions import THRESHOLD, combined_word, word_of_score
from attnaudit.statistics.intervals import CONFIDENCE
from attnaudit.statistics.scores import head_score

#: What the words say of audited models.
MEANINGS = {
    Word.SUPPORTED: "the observed heads score like heads for which the claim is exactly true",
    Word.REFUTED: "above chance, but far from the claim",
    Word.INDISTINGUISHABLE: "no better than references in which the claim cannot be true",
    Word.NOT_IDENTIFIABLE: "these inputs or measures cannot tell the claim from chance",
    Word.NOT_MEASURABLE: "too much could not be computed, or was not asked for",
    Word.INCONCLUSIVE: "the interval is too wide to decide",
}


@dataclass(frozen=True)
class Exhibit:
    """What a claim is decided on: one model's evidence and summary, and the level of every interval."""

    evidence: Evidence
    summary: Mapping[str, Any]
    model: str
    protocol: str
    level: float = CONFIDENCE
    threshold: float = THRESHOLD
    seed: int = 0

    def score(self, measure: str, theory: str = "kpca") -> Score:
        """The calibrated score of a measure."""
        table = head_table(self.evidence, self.model, measure, theory)
        return head_score(table, measure_named(measure), level=self.level, seed=self.seed)

    @property
    def observed(self) -> Mapping[str, Any]:
        """The model's measures, summarised."""
        statistics: Mapping[str, Any] = self.summary["models"][self.model]["observed"]
        return statistics


@dataclass(frozen=True)
class Statement:
    """One statement of one paper, and how it is decided; `deciding` and `shown` are names of measures."""

    name: str
    statement: str
    citation: str
    formula: str
    rule: str
    deciding: tuple[str, ...]
    shown: tuple[str, ...] = ()

    @property
    def judged_by(self) -> str:
        """The command that judges it."""
        raise NotImplementedError


@dataclass(frozen=True)
class Claim(Statement):
    """A statement about trained models, decided on the evidence of an audit.

    `decide` is None for claims that follow the common rule: their `deciding` measures are scored against references.
    """

    theory: str = "kpca"
    decide: Callable[[Exhibit], Verdict] | None = None

    @property
    def judged_by(self) -> str:
        """The command that judges it."""
        return "attnaudit audit MODEL"

    def verdict(self, exhibit: Exhibit) -> Verdict:
        """What the evidence says."""
        return self.decide(exhibit) if self.decide is not None else self._by_scores(exhibit)

    def _by_scores(self, exhibit: Exhibit) -> Verdict:
        deciding = [exhibit.score(measure, self.theory) for measure in self.deciding]
        shown = [exhibit.score(measure, self.theory) for measure in self.shown]
        words = [word_of_score(entry, exhibit.threshold) for entry in deciding]
        word = combined_word(words)
        return Verdict(self.name, exhibit.model, word, reason_for(word, deciding), tuple(deciding), tuple(shown))


def reason_for(word: Word, scores: Sequence[Score]) -> str:
    """The deciding numbers, or why there are none."""
    if word is Word.NOT_IDENTIFIABLE:
        lost = max((s.unidentifiable for s in scores), default=0)
        if lost and not any(s.heads for s in scores):
            return f"none of {lost:,} heads has N ≥ 2d tokens and a kernel of rank above d"
        return "no deciding measure tells planted heads from null ones"
    if word is Word.NOT_MEASURABLE:
        if all(s.heads + s.rejected == 0 for s in scores):
            return "the run has no references for it"
        worst = max(scores, key=lambda s: s.rejected)
        return f"{worst.rejected:,} of {worst.heads + worst.rejected:,} heads are rejected by {worst.measure}"
    return "; ".join(f"{s.measure} {_number(s)}" for s in scores if s.mean is not None and s.has_power)


def _number(score: Score) -> str:
    if score.interval is None:
        return f"{score.mean:.2f} (one input: no interval)"
    return f"{score.mean:.2f} [{score.interval[0]:.2f}, {score.interval[1]:.2f}]"
