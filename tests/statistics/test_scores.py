"""Scores by hand: arrays in, a score out."""

import numpy as np
import pytest

from attnaudit.measures import Measure
from attnaudit.measures.references.planted import NOISES
from attnaudit.records.head_values import HeadName, HeadTable
from attnaudit.records.verdict import Finding, VerdictWord
from attnaudit.statistics.decisions import LEAST_INPUTS, decide_score
from attnaudit.statistics.scores import Bounds, head_score, trial_score

OBSERVED, NULL, PLANTED = (0.2, 0.3, 0.6), (0.1, 0.1, 0.2), (1.1, 0.6, 1.0)


def measure(closer="higher", **more):
    return Measure("m", "a measure", lambda at: None, closer=closer, **more)


def table(references, inputs=(0, 0, 1), heads=None, unidentifiable=0):
    """A column is a number for each row, or a row of repeats."""
    repeats = {name: np.array(own, dtype=float).reshape(len(inputs), -1) for name, own in references.items()}
    heads = np.zeros(len(inputs), dtype=int) if heads is None else np.array(heads)
    names = tuple(HeadName(0, head) for head in range(heads.max(initial=0) + 1))
    means = {
        name: np.array([row[np.isfinite(row)].mean() if np.isfinite(row).any() else np.nan for row in own])
        for name, own in repeats.items()
    }
    return HeadTable(np.array(inputs), heads, names, means, repeats, unidentifiable)


def scored(closer="higher", of=None, **references):
    return head_score(table(references), of or measure(closer))


@pytest.mark.parametrize(("closer", "sign"), [("higher", 1), ("lower", -1)])
def test_a_score_lies_between_chance_and_the_claim_in_the_direction_of_its_measure(closer, sign):
    observed, null, planted = ([sign * x for x in own] for own in (OBSERVED, NULL, PLANTED))
    score = scored(closer, observed=observed, random_projection=null, planted=planted)
    assert score.score.mean == pytest.approx(((0.1 + 0.4) / 2 + 0.5) / 2)  # inputs count alike, whatever their heads
    assert score.means == pytest.approx(
        {
            name: float(np.mean(own))
            for name, own in (("observed", observed), ("random_projection", null), ("planted", planted))
        }
    )
    assert (score.inputs, score.informative, score.rejected, score.null) == (2, 3, 0, "random_projection")
    low, high = score.score.interval
    assert low <= score.score.mean <= high


def test_the_null_is_a_mean_over_repeats_and_not_the_best_of_them():
    repeats = np.stack([np.array(NULL) - 0.1, np.array(NULL) + 0.1], axis=1)
    score = scored(observed=OBSERVED, random_projection=repeats, planted=PLANTED)
    assert score.score.mean == pytest.approx(((0.1 + 0.4) / 2 + 0.5) / 2)


def test_values_turned_at_random_are_the_null_only_where_inputs_of_layers_are_not_known():
    both = scored(observed=OBSERVED, rotated=(9, 9, 9), random_projection=NULL, planted=PLANTED)
    assert both.null == "random_projection"
    unknown = (np.nan, np.nan, np.nan)
    assert scored(observed=OBSERVED, random_projection=unknown, rotated=NULL, planted=PLANTED).null == "rotated"


@pytest.mark.parametrize("name", ["shuffled_tokens", "other_head", "untrained"])
def test_what_is_shown_for_context_does_not_move_a_score(name):
    references = {"observed": OBSERVED, "random_projection": NULL, "planted": PLANTED}
    beside = scored(**references, **{name: (9.0, 9.0, 9.0)})
    assert beside.score == scored(**references).score
    assert beside.means[name] == 9.0


def test_a_row_without_a_null_is_rejected_and_counted():
    score = scored(observed=OBSERVED, random_projection=(0.1, 0.1, np.nan), planted=PLANTED)
    assert (score.informative, score.rejected, score.uninformative) == (2, 1, 0)
    assert score.score.mean == pytest.approx((0.1 + 0.4) / 2)
    assert score.score.interval is None  # one input is left


def test_a_row_in_which_planted_values_are_no_closer_than_the_null_is_uninformative_and_counted():
    score = scored(observed=OBSERVED, random_projection=NULL, planted=(1.1, 0.1, 0.1))
    assert (score.informative, score.uninformative, score.rejected) == (1, 2, 0)
    assert score.score.mean == pytest.approx(0.1)
    nothing = scored(observed=OBSERVED, random_projection=NULL, planted=NULL)
    assert (nothing.score, nothing.uninformative) == (None, 3)


@pytest.mark.parametrize("missing", ["observed", "random_projection", "planted"])
def test_without_a_null_an_ideal_or_the_head_itself_there_is_no_score(missing):
    references = {"observed": OBSERVED, "random_projection": NULL, "planted": PLANTED}
    del references[missing]
    score = head_score(table(references, unidentifiable=5), measure())
    assert (score.score, score.reach, score.heads, score.means) == (None, None, (), None)
    assert (score.informative, score.rejected, score.unidentifiable) == (0, 3, 5)


def test_reach_and_realised_are_those_of_the_best_projection():
    numbers = {"observed": (0.2, 0.3, 0.4), "random_projection": (0.1, 0.2, 0.3), "planted": (1.1, 1.2, 1.3)}
    ceiling = {"best_projection": (0.3, 0.4, 0.6), "best_projection_fitted": (0.5, 0.6, 0.7)}
    score = head_score(table(numbers | ceiling, inputs=(0, 1, 2)), measure(has_ceiling=True))
    assert score.reach.mean == pytest.approx((0.2 + 0.2 + 0.3) / 3)
    assert score.fitted_reach.mean == pytest.approx(0.4)
    assert score.realised.mean == pytest.approx(0.1 / score.reach.mean)
    low, high = score.realised.interval
    assert low < score.realised.mean < high


def test_a_measure_that_the_best_projection_does_not_maximise_has_no_reach():
    numbers = {"observed": OBSERVED, "random_projection": NULL, "planted": PLANTED}
    score = scored(**numbers, best_projection=PLANTED, best_projection_fitted=PLANTED)
    assert (score.reach, score.fitted_reach, score.realised) == (None, None, None)


def test_nothing_is_realised_of_a_ceiling_that_is_no_higher_than_the_null():
    numbers = {"observed": OBSERVED, "random_projection": NULL, "planted": PLANTED}
    score = scored(of=measure(has_ceiling=True), **numbers, best_projection=NULL, best_projection_fitted=NULL)
    assert score.reach.mean == 0
    assert score.realised is None


def test_nothing_is_realised_of_a_ceiling_that_may_be_the_null():
    numbers = {"observed": (0.1, 0.2, 0.3), "random_projection": (0, 0, 0), "planted": (1, 1, 1)}
    ceiling = {"best_projection": (-0.1, 0.2, 0.4)}
    score = head_score(table(numbers | ceiling, inputs=(0, 1, 2)), measure(has_ceiling=True))
    low, high = score.reach.interval
    assert low < 0 < score.reach.mean < high
    assert score.realised is None


def with_noise(*scores):
    """Rows whose planted values keep these scores at the shares of noise."""
    curve = np.tile(scores, (3, 1))
    return scored(
        observed=(0.5, 0.5, 0.5), random_projection=(0, 0, 0), planted=(1, 1, 1), planted_with_noise=curve
    ).tolerance


def test_the_tolerance_is_the_noise_at_which_planted_values_fall_below_the_threshold():
    assert NOISES == (0.001, 0.01, 0.05, 0.2, 0.5)
    assert with_noise(1, 1, 0.9, 0.7, 0.2) == pytest.approx((0.05 + 0.2) / 2)  # .8 is half-way from .9 to .7
    assert with_noise(0.6, 0.5, 0.4, 0.3, 0.2) == pytest.approx(0.0005)
    assert with_noise(1, 1, 1, 1, 0.9) == 0.5  # the most that was tried


def test_the_tolerance_is_of_the_sample_of_rows_that_has_noise():
    curve = np.full((3, len(NOISES)), np.nan)
    curve[1] = 1, 1, 0.9, 0.7, 0.2
    numbers = {"observed": (0.5, 0.5, 0.5), "random_projection": (0, 0, 0), "planted": (1, 1, 1)}
    assert scored(**numbers, planted_with_noise=curve).tolerance == pytest.approx(0.125)
    assert scored(**numbers).tolerance is None  # it was not tried


def test_noise_that_was_tried_in_vain_decides_nothing():
    inputs = range(LEAST_INPUTS)
    numbers = {name: [own] * len(inputs) for name, own in (("observed", 0), ("random_projection", 0), ("planted", 1))}
    untried = table(numbers, inputs)
    in_vain = table({**numbers, "planted_with_noise": np.full((len(inputs), len(NOISES)), np.nan)}, inputs)
    assert decide_score(head_score(untried, measure())) == (VerdictWord.REFUTED, Finding.AT_CHANCE)
    score = head_score(in_vain, measure())
    assert score.tolerance == 0
    assert decide_score(score) == (VerdictWord.UNDECIDED, Finding.NOT_IDENTIFIABLE)


def test_a_contrast_of_rounding_is_none():
    numbers = {"observed": (1.0, 1.0, 1.0), "random_projection": (1 - 7e-15,) * 3, "planted": (1.0, 1.0, 1.0)}
    score = scored(**numbers)
    assert (score.score, score.uninformative, score.unscored) == (None, 3, 1)


def test_where_inputs_of_some_layers_are_not_known_these_have_another_null():
    unknown, known = (np.nan, np.nan), (0.2, 0.4)
    columns = {
        "observed": (0.5, 0.5, 0.5),
        "random_projection": (known, known, unknown),
        "rotated": ((0.9, np.nan), (0.9, np.nan), (0.0, 0.2)),
        "planted": (1.0, 1.0, 1.0),
    }
    score = head_score(table(columns, (0, 1, 2), heads=(0, 0, 1)), measure())
    assert score.rejected == 0
    assert score.score.mean == pytest.approx(((0.2 / 0.7) * 2 + 0.4 / 0.9) / 3)


def test_heads_with_fewer_inputs_than_a_claim_needs_are_not_named():
    inputs = (*range(LEAST_INPUTS), 0, 1)
    heads = (0,) * LEAST_INPUTS + (1, 1)
    spread = np.linspace(0.97, 0.98, len(inputs))
    numbers = {"observed": spread, "random_projection": 0 * spread, "planted": 1 + 0 * spread}
    own = {head.head: head for head in head_score(table(numbers, inputs, heads), measure()).heads}
    assert (own[0].satisfies, own[0].above_chance) == (True, True)
    assert (own[1].satisfies, own[1].above_chance) == (False, False)


def test_the_range_over_gauges_is_of_scores_against_the_null_in_the_same_gauge():
    missing = np.full((2, 2), np.nan)
    observed = np.concatenate([[[0.6, 0.4]], missing])
    null = np.concatenate([[[0.2, 0.4]], missing])
    numbers = {"observed": (0.5, 0.5, 0.5), "random_projection": (0, 0, 0), "planted": (1, 1, 1)}
    score = scored(**numbers, reparametrised=observed, reparametrised_null=null)
    assert score.gauges == pytest.approx((0.0, 0.5))
    assert scored(**numbers).gauges is None
    as_close = np.concatenate([[[0.2, 1.0]], missing])
    assert scored(**numbers, reparametrised=observed, reparametrised_null=as_close).gauges is None


def of_heads(*means, inputs=LEAST_INPUTS, spread=0.02, null_spread=0.0):
    """Heads with these mean scores; inputs differ by noise, and repeats of the null by their projection."""
    generator = np.random.default_rng(0)
    count = len(means)
    heads, places = np.tile(np.arange(count), inputs), np.repeat(np.arange(inputs), count)
    observed = np.array(means)[heads] + spread * generator.standard_normal(len(heads))
    repeats = null_spread * generator.standard_normal((count, 4))
    references = {
        "observed": observed,
        "random_projection": (repeats - repeats.mean(axis=1, keepdims=True))[heads],
        "planted": np.ones(len(heads)),
    }
    return head_score(table(references, places, heads), measure(), Bounds(chance=0.05))


def test_every_head_has_a_score_and_those_that_satisfy_the_claim_or_are_above_chance_are_marked():
    score = of_heads(1.0, 0.5, 0.0, 0.95)
    assert [(own.layer, own.head) for own in score.heads] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert [own.score.mean for own in score.heads] == pytest.approx([1.0, 0.5, 0.0, 0.95], abs=0.03)
    assert [own.satisfies for own in score.heads] == [True, False, False, True]
    assert [own.above_chance for own in score.heads] == [True, True, False, True]


def test_the_spread_of_the_null_over_projections_is_part_of_every_interval():
    """One projection is better than another by chance, which more inputs do not change."""
    few, many = (of_heads(0.1, 0.0, null_spread=0.2, inputs=inputs) for inputs in (8, 200))
    sure = of_heads(0.1, 0.0, inputs=200)

    def width(estimate):
        return estimate.interval[1] - estimate.interval[0]

    assert width(many.heads[0].score) > 0.8 * width(few.heads[0].score)
    assert width(many.score) > 10 * width(sure.score)
    assert sure.heads[0].above_chance
    assert not many.heads[0].above_chance


def test_a_layer_has_its_mean_and_the_interval_that_it_would_have_alone():
    score = of_heads(0.1, 0.0, null_spread=0.2)
    assert [own.layer for own in score.layers] == [0]
    assert score.layers[0].score == score.score


def test_a_head_that_is_exactly_true_satisfies_the_claim_however_much_projections_differ():
    """The null cancels from a score of 1, and nothing is left to chance."""
    score = of_heads(1.0, *[0.0] * 9, null_spread=0.3)
    assert [own.satisfies for own in score.heads] == [True] + [False] * 9
    low, high = score.heads[0].score.interval
    assert 0.95 < low <= high < 1.05


def test_intervals_of_the_mean_contain_it_when_some_heads_are_true_and_chance_moves_the_others():
    generator = np.random.default_rng(0)
    heads, places = np.tile(np.arange(10), 25), np.repeat(np.arange(25), 10)
    for true in (0, 9):
        contained = 0
        for _ in range(200):
            luck = 0.2 * generator.standard_normal((10, 5))
            noise = 0.05 * generator.standard_normal((250, 5))
            drawn = luck[heads] + noise
            references = {
                "observed": np.where(heads < true, 1.0, drawn[:, 0]),
                "random_projection": drawn[:, 1:],
                "planted": np.ones(250),
            }
            low, high = head_score(table(references, places, heads), measure()).score.interval
            contained += low <= true / 10 <= high
        assert 0.9 <= contained / 200 <= 0.99


def test_scores_of_repetitions_are_calibrated_between_chance_and_the_claim():
    score = trial_score("alignment", np.array([0.1, 1.0]), np.array([0.0, 0.1, 0.2]), 1.0, level=0.95)
    assert score.score.mean == pytest.approx(0.5)
    assert score.inputs == 2
    low, high = score.score.interval
    assert low == pytest.approx(0.5 - 12.706 * 0.5, rel=1e-3)
    assert high == pytest.approx(0.5 + 12.706 * 0.5, rel=1e-3)


def test_repetitions_that_chance_does_as_well_are_uninformative():
    score = trial_score("alignment", np.array([0.9, 1.0]), np.array([1.0, 1.1]), 1.0, level=0.95)
    assert (score.score, score.uninformative) == (None, 2)
