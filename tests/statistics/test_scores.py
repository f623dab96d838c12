"""Scores by hand: arrays in, a score out."""

import numpy as np
import pytest

from attnaudit.measures import Measure
from attnaudit.records.head_values import HeadTable
from attnaudit.statistics.scores import head_score, trial_score


def measure(closer="higher", **more):
    return Measure("m", "a measure", lambda at: None, closer=closer, **more)


def scored(closer="higher", inputs=(0, 0, 1), unidentifiable=0, of=None, **references):
    table = HeadTable(np.array(inputs), {name: np.array(own) for name, own in references.items()}, unidentifiable)
    return head_score(table, of or measure(closer), level=0.95)


OBSERVED, NULL, PLANTED = (0.2, 0.3, 0.6), (0.1, 0.1, 0.2), (1.1, 0.6, 1.0)


@pytest.mark.parametrize(("closer", "sign"), [("higher", 1), ("lower", -1)])
def test_a_score_lies_between_chance_and_the_claim_in_the_direction_of_its_measure(closer, sign):
    observed, null, planted = ([sign * x for x in own] for own in (OBSERVED, NULL, PLANTED))
    score = scored(closer, observed=observed, gaussian=null, planted=planted)
    assert score.mean == pytest.approx(((0.1 + 0.4) / 2 + 0.5) / 2)  # inputs count alike, whatever their heads
    assert (score.observed, score.null, score.planted) == pytest.approx(
        tuple(float(np.mean(own)) for own in (observed, null, planted))
    )
    assert (score.heads, score.rejected, score.auc, score.null_name) == (3, 0, 1.0, "gaussian")
    low, high = score.interval
    assert low <= score.mean <= high


def test_chance_is_the_best_null_of_each_head():
    other = (0.0, 0.2, 0.5)
    score = scored(observed=OBSERVED, gaussian=NULL, shuffled_tokens=other, planted=PLANTED)
    assert score.mean == pytest.approx(((0.1 + 0.1 / 0.4) / 2 + 0.1 / 0.5) / 2)
    assert score.null_name == "shuffled_tokens"


def test_a_null_without_a_number_does_not_count_and_a_head_without_any_is_rejected():
    first, second = (np.nan, 0.1, np.nan), (0.1, np.nan, np.nan)
    score = scored(observed=OBSERVED, gaussian=first, shuffled_tokens=second, planted=PLANTED)
    assert (score.heads, score.rejected) == (2, 1)
    assert score.mean == pytest.approx((0.1 + 0.4) / 2)
    assert score.interval is None  # one input is left


def test_a_head_that_scores_no_better_planted_than_by_chance_is_rejected():
    score = scored(observed=OBSERVED, gaussian=NULL, planted=(1.1, 0.1, 0.1))
    assert (score.heads, score.rejected) == (1, 2)


def test_the_untrained_network_is_no_null_of_a_measure_in_units_of_the_head():
    references = {"observed": OBSERVED, "gaussian": NULL, "untrained": (9.0, 9.0, 9.0), "planted": PLANTED}
    assert scored(**references).null_name == "untrained"
    assert scored(**references, of=measure(in_units_of_the_head=True)).null_name == "gaussian"


@pytest.mark.parametrize("missing", ["observed", "gaussian", "planted"])
def test_without_a_null_an_ideal_or_the_head_itself_there_is_no_score(missing):
    references = {"observed": OBSERVED, "gaussian": NULL, "planted": PLANTED}
    del references[missing]
    score = scored(**references, unidentifiable=5)
    assert (score.mean, score.interval, score.auc) == (None, None, None)
    assert (score.heads, score.rejected, score.unidentifiable) == (0, 3, 5)


def test_scores_of_repetitions_are_calibrated_between_chance_and_the_claim():
    score = trial_score("alignment", np.array([0.1, 1.0]), np.array([0.0, 0.1, 0.2]), 1.0, level=0.95)
    assert score.mean == pytest.approx(0.5)
    assert score.heads == 2
    low, high = score.interval
    assert low == pytest.approx(0.5 - 12.706 * 0.5, rel=1e-3)
    assert high == pytest.approx(0.5 + 12.706 * 0.5, rel=1e-3)
