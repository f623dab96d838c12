"""Which theory explains the values best, and is any better than chance?

Every theory is scored by its own deciding measures between its own null and itself, and is as good as the measure that
says least of it. A theory at or below chance has no place: how far below its null it falls says nothing of it. Nor has
one that is true by construction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from attnaudit.measures import REFERENCES, Measure, Reference, measure_named
from attnaudit.measures.references.registry import with_nulls_of
from attnaudit.records.grouped_rows import Group
from attnaudit.records.measured_heads import MeasuredHeads
from attnaudit.records.verdict import BestTheory, Finding, Rank, Score
from attnaudit.statistics.decisions import combine, decide_score, decides
from attnaudit.statistics.intervals import widened_level
from attnaudit.statistics.judged_heads import JudgedHeads
from attnaudit.statistics.scored_heads import scored_heads
from attnaudit.statistics.scores import Bounds, score_of
from attnaudit.theories.any_gauge import KernelPCAInAnyGauge
from attnaudit.theories.base import Theory
from attnaudit.theories.fitting import FittedTheory

#: Measures that apply to every theory that predicts head by head, free of order and signs.
MEASURES = ("column_cosine_matched", "value_subspace_overlap", "procrustes")
#: Findings of a theory that explains something.
_ABOVE_CHANCE = (Finding.PARTIAL, Finding.ON_AVERAGE, Finding.TOO_WIDE, Finding.MEASURES_DISAGREE)


def rank(
    heads: MeasuredHeads,
    model: str,
    theories: Sequence[Theory],
    bounds: Bounds,
    references: Mapping[str, Reference] = REFERENCES,
    own_measures: Mapping[str, Measure] | None = None,
) -> list[Rank]:
    """Theories from best to worst, and after them those without a place, in the order in which they are given.

    Intervals hold for all theories and measures together, and false discoveries for all theories.
    """
    tests = sum(len(deciding_measures(theory)) for theory in theories)
    own = replace(bounds, level=widened_level(tests), false_discoveries=bounds.false_discoveries / len(theories))
    ranks = []
    for theory in theories:
        scores = []
        for name in deciding_measures(theory):
            measure = (own_measures or {}).get(name) or measure_named(name)
            how = partial(scored_heads, measure=measure, references=with_nulls_of(theory, references))
            scores.append(score_of(heads.scored(Group(model, theory.name, name), how), name, own))
        ranks.append(_ranked(model, theory, tuple(scores), own))
    placed = [entry for entry in ranks if entry.place is not None]
    placed.sort(key=lambda entry: -(entry.mean or 0.0))
    return [
        *(replace(entry, place=place + 1) for place, entry in enumerate(placed)),
        *(entry for entry in ranks if entry.place is None),
    ]


def deciding_measures(theory: Theory) -> tuple[str, ...]:
    """The names of the measures that decide a theory."""
    if isinstance(theory, KernelPCAInAnyGauge):
        return theory.measures
    return theory.measures if isinstance(theory, FittedTheory) else MEASURES


def _ranked(model: str, theory: Theory, scores: tuple[Score, ...], bounds: Bounds) -> Rank:
    """One theory; its place is 1 if it has one at all."""
    decision = combine([decide_score(score, bounds.threshold, bounds.chance) for score in scores])
    heads = JudgedHeads.of([score for score in scores if decides(score)])
    silent = tuple(score.measure for score in scores if not decides(score))
    found = Rank(model, theory.name, None, scores, *decision, None, len(heads.above_chance), len(heads.all), silent)
    least = found.least
    if least is None or least.score is None:
        return found
    interval = least.score.interval
    above = decision[1] in _ABOVE_CHANCE and interval is not None and interval[0] > bounds.chance
    competes = above and not getattr(theory, "baseline", False)
    return replace(found, mean=least.score.mean, place=1 if competes else None)


def best_theories(ranks: Sequence[Rank], theories: Sequence[Theory]) -> Iterator[BestTheory]:
    """The winner of every head: of the theories that it is above chance for, the one with the highest score."""
    baselines = {theory.name for theory in theories if getattr(theory, "baseline", False)}
    judged = {
        rank.theory: JudgedHeads.of([score for score in rank.scores if decides(score)])
        for rank in ranks
        if rank.theory not in baselines
    }
    names = sorted({(own.layer, own.head) for heads in judged.values() for own in heads.all})
    for layer, head in names:
        scores = {
            theory: own.score
            for theory, heads in judged.items()
            for own in heads.above_chance
            if (own.layer, own.head) == (layer, head)
        }
        best = max(scores, key=lambda name: scores[name].mean, default=None)
        yield BestTheory(ranks[0].model, layer, head, best, None if best is None else scores[best])
