"""Which theory explains the values best, and is any better than chance?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attnaudit.measures import REFERENCES, Reference, measure_named
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.verdict import Rank
from attnaudit.statistics.decisions import combine, decide_score
from attnaudit.statistics.intervals import widened_level
from attnaudit.statistics.scores import Bounds, head_score

#: Measures that apply to every theory, free of order and signs.
MEASURES = tuple(measure_named(name) for name in ("column_cosine_matched", "value_subspace_overlap", "procrustes"))


def rank(
    evidence: Evidence,
    model: str,
    theories: Sequence[str],
    bounds: Bounds,
    references: Mapping[str, Reference] = REFERENCES,
    groups: Mapping[str, str] | None = None,
) -> list[Rank]:
    """Theories from best to worst, by the mean of their scores."""
    level = widened_level(len(MEASURES) * len(theories))
    own = Bounds(bounds.threshold, bounds.chance, level)
    ranks = []
    for name in theories:
        scores = tuple(
            head_score(head_table(evidence, model, measure.name, name, groups), measure, own, references)
            for measure in MEASURES
        )
        means = [score.score.mean for score in scores if score.score is not None]
        decision = combine([decide_score(score, own.threshold, own.chance) for score in scores])
        ranks.append(Rank(model, name, sum(means) / len(means) if means else None, scores, *decision))
    return sorted(ranks, key=lambda entry: float("inf") if entry.mean is None else -entry.mean)
