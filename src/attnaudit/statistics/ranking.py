"""Which theory explains the values best, and is any better than chance?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnaudit.claims.verdict import THRESHOLD, Word, combine, word_of
from attnaudit.records.evidence import Evidence
from attnaudit.statistics.intervals import widened_level
from attnaudit.statistics.scores import Score, score

#: Measures every theory can be held to, with power and free of order and signs.
MEASURES = ("column_cosine_matched", "value_subspace_overlap", "procrustes")


@dataclass(frozen=True)
class Rank:
    """One theory on one model: the mean of its scores, each of them, and the word they come to."""

    model: str
    theory: str
    mean: float | None
    scores: tuple[Score, ...]
    word: Word


def rank(
    evidence: Evidence, model: str, theories: Sequence[str], *, threshold: float = THRESHOLD, seed: int = 0
) -> list[Rank]:
    """Theories from best to worst, by the mean of their calibrated scores."""
    level = widened_level(len(MEASURES) * len(theories))
    ranks = []
    for name in theories:
        scores = tuple(score(evidence, model, measure, name, level=level, seed=seed) for measure in MEASURES)
        means = [entry.mean for entry in scores if entry.mean is not None]
        word = combine([word_of(entry, threshold) for entry in scores])
        ranks.append(Rank(model, name, sum(means) / len(means) if means else None, scores, word))
    return sorted(ranks, key=lambda entry: float("inf") if entry.mean is None else -entry.mean)
