"""Which theory explains the values best, and is any better than chance?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attnaudit.measures import REFERENCES, Reference, measure_named
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.verdict import Rank
from attnaudit.statistics.decisions import THRESHOLD, combined_word, word_of_score
from attnaudit.statistics.intervals import widened_level
from attnaudit.statistics.scores import head_score

#: Measures that apply to every theory, with power and free of order and signs.
MEASURES = tuple(measure_named(name) for name in ("column_cosine_matched", "value_subspace_overlap", "procrustes"))


def rank(
    evidence: Evidence,
    model: str,
    theories: Sequence[str],
    *,
    threshold: float = THRESHOLD,
    seed: int = 0,
    references: Mapping[str, Reference] = REFERENCES,
) -> list[Rank]:
    """Theories from best to worst, by the mean of their calibrated scores."""
    level = widened_level(len(MEASURES) * len(theories))
    ranks = []
    for name in theories:
        scores = tuple(
            head_score(
                head_table(evidence, model, measure.name, name), measure, level=level, seed=seed, references=references
            )
            for measure in MEASURES
        )
        means = [score.mean for score in scores if score.mean is not None]
        word = combined_word([word_of_score(score, threshold) for score in scores])
        ranks.append(Rank(model, name, sum(means) / len(means) if means else None, scores, word))
    return sorted(ranks, key=lambda entry: float("inf") if entry.mean is None else -entry.mean)
