"""Which theory explains values best, from scores by hand."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from attnaudit.audit.ranking import MEASURES, best_theories, rank
from attnaudit.measures.references.planted import NOISES
from attnaudit.records.head_values import HeadName, HeadTable
from attnaudit.statistics.scores import Bounds

INPUTS, HEADS = 12, 2


@dataclass(frozen=True)
class Named:
    name: str
    baseline: bool = False
    text: str = "a theory of which only scores are known"

    def predict(self, heads, spectrum, protocol):
        raise NotImplementedError


class Rows:
    """Heads that have these scores by theory and measure: a number for all heads, or one for each."""

    def __init__(self, scores, spread=0.02):
        self.scores, self.spread = scores, spread

    def scored(self, group, how):
        own = self.scores[group.theory]
        means = np.broadcast_to(own[group.measure] if isinstance(own, dict) else own, HEADS)
        heads, inputs = np.tile(np.arange(HEADS), INPUTS), np.repeat(np.arange(INPUTS), HEADS)
        noise = self.spread * np.random.default_rng(0).standard_normal(len(heads))
        columns = {"observed": means[heads] + noise, "random_projection": 0 * noise, "planted": 1 + 0 * noise}
        names = tuple(HeadName(head, 0) for head in range(HEADS))
        return how(HeadTable(inputs, heads, names, columns, {name: x[:, None] for name, x in columns.items()}, 0))


def ranked(scores, baselines=(), bounds=None, spread=0.02):
    theories = [Named(name, name in baselines) for name in scores]
    return rank(Rows(scores, spread), "model", theories, bounds or Bounds()), theories


def by_measure(*scores):
    return dict(zip(MEASURES, scores, strict=True))


def test_a_theory_is_as_good_as_the_measure_that_says_least_of_it():
    ranks, _ = ranked({"mixed": by_measure(0.9, 0.3, 0.95), "even": 0.5})
    assert [(own.theory, own.place) for own in ranks] == [("even", 1), ("mixed", 2)]
    assert [own.mean for own in ranks] == pytest.approx([0.5, 0.3], abs=0.02)
    assert ranks[1].least.measure == MEASURES[1]
    assert [own.score.mean for own in ranks[1].layers] == pytest.approx([0.3, 0.3], abs=0.02)


def test_a_measure_that_decides_nothing_does_not_cost_a_theory_its_place():
    class Fragile(Rows):
        def scored(self, group, how):
            found = super().scored(group, how)
            return replace(found, noise=(0.1,) * len(NOISES)) if group.measure == MEASURES[1] else found

    (own,) = rank(Fragile({"one": by_measure(0.9, 0.0, 0.9)}), "model", [Named("one")], Bounds())
    assert (own.place, own.silent, own.least.measure) == (1, (MEASURES[1],), MEASURES[0])


def test_what_is_at_chance_or_true_by_construction_has_no_place():
    ranks, _ = ranked({"chance": 0.0, "below": -2.0, "built in": 1.0, "better": 0.4}, baselines=["built in"])
    assert [(own.theory, own.place) for own in ranks] == [
        ("better", 1), ("chance", None), ("below", None), ("built in", None),
    ]  # fmt: skip


def test_a_theory_that_may_be_at_chance_has_no_place_whatever_its_mean():
    ranks, _ = ranked({"wide": 0.5}, spread=2.0)
    low, high = ranks[0].least.score.interval
    assert low < 0.05 < high
    assert ranks[0].place is None


def test_intervals_hold_for_all_theories_and_measures_together():
    def width(scores):
        ranks, _ = ranked(scores)
        own = next(own for own in ranks if own.theory == "one").scores[0].score.interval
        return own[1] - own[0]

    alone, beside = width({"one": 0.5}), width({"one": 0.5, "two": 0.5, "three": 0.5})
    assert beside > 1.1 * alone


def test_false_discoveries_are_shared_by_all_theories():
    def discovered(count, rate):
        names = ["one", *(f"other {number}" for number in range(1, count))]
        ranks, _ = ranked(dict.fromkeys(names, 0.1), bounds=Bounds(false_discoveries=rate), spread=0.12)
        return next(own for own in ranks if own.theory == "one").above_chance

    rates = 2.0 ** -np.arange(1, 30)
    assert [discovered(4, 4 * rate) for rate in rates[2:]] == [discovered(1, rate) for rate in rates[2:]]
    assert {discovered(1, rate) for rate in rates} > {0}


def test_the_best_theory_of_a_head_has_the_highest_score_and_is_no_baseline():
    scores = {"first": [0.9, 0.0], "second": [0.6, 0.02], "built in": 1.0}
    found = list(best_theories(*ranked(scores, baselines=["built in"])))
    assert [(own.layer, own.head, own.theory) for own in found] == [(0, 0, "first"), (1, 0, None)]
    assert found[0].score.mean == pytest.approx(0.9, abs=0.02)
