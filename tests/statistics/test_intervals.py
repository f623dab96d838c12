import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from attnaudit.statistics import intervals
from attnaudit.statistics.intervals import (
    bootstrap,
    bootstrap_interval,
    bootstrap_intervals,
    widened_level,
    wilson_interval,
)


def test_interval_covers_the_true_mean_as_often_as_it_says():
    generator = np.random.default_rng(0)
    samples = generator.normal(3.0, 1.0, size=(300, 40))
    hits = sum(low <= 3.0 <= high for low, high in (bootstrap_interval(sample, seed=1) for sample in samples))
    assert 0.90 <= hits / 300 <= 0.98


def test_interval_is_repeatable_and_missing_for_one_input():
    means = np.arange(10.0)
    assert bootstrap_interval(means, seed=0) == bootstrap_interval(means, seed=0)
    assert bootstrap_interval(means[:1], seed=0) is None


def test_drawing_in_portions_changes_no_digit(monkeypatch):
    means = np.random.default_rng(0).normal(size=37)
    at_once = bootstrap_interval(means, seed=5)
    monkeypatch.setattr(intervals, "_DRAWN_AT_ONCE", 1000)
    assert bootstrap_interval(means, seed=5) == at_once


def test_intervals_found_together_are_those_found_alone():
    generator = np.random.default_rng(3)
    samples = [generator.standard_normal(size) for size in (8, 1, 30, 8, 0)]
    assert bootstrap_intervals(samples, seed=2) == [bootstrap_interval(sample, seed=2) for sample in samples]


def test_a_constant_has_an_interval_of_no_width():
    assert bootstrap_interval(np.full(5, 2.0), seed=0) == pytest.approx((2.0, 2.0))


def test_each_group_is_resampled_on_its_own():
    """Of 2 units at 0 and 3 at 1 any resample has 3 at 1; were they drawn together, their number would vary."""
    values = np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    assert bootstrap(lambda drawn: values[drawn].sum(axis=1), [2, 3], seed=0) == (3.0, 3.0)
    low, high = bootstrap(lambda drawn: values[drawn].sum(axis=1), [5], seed=0)
    assert low < 3 < high


def test_groups_are_drawn_resample_by_resample():
    """The stream of random numbers is part of what a run repeats: the first group, then the second, then the next."""
    generator = np.random.default_rng(7)
    expected = [[*generator.integers(0, 3, 3), *(3 + generator.integers(0, 4, 4))] for _ in range(6)]
    drawn = []
    bootstrap(lambda rows: drawn.extend(rows.tolist()) or np.zeros(len(rows)), [3, 4], seed=7, resamples=6)
    assert drawn == expected


@given(trials=st.integers(1, 500), data=st.data())
def test_the_interval_is_wilsons(trials, data):
    successes = data.draw(st.integers(0, trials))
    expected = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_no_trials_leave_everything_open():
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_many_tests_widen_the_intervals():
    assert widened_level(1) == pytest.approx(0.95)
    assert widened_level(10) == pytest.approx(0.995)


@pytest.mark.parametrize("equal", [0.0, 1e-4, 0.3, -1e6])
def test_equal_numbers_have_an_interval_only_if_it_is_known_how_fine_they_are(equal):
    values = np.array([equal, equal * (1 + 1e-12), equal])
    assert intervals.student_interval(values, 0.95) is None
    low, high = intervals.student_interval(values, 0.95, coarseness=max(abs(equal), 1.0))
    assert low < equal < high
    assert intervals.student_interval(np.array([1.0, 1.001]), 0.95) is not None


def test_shares_are_no_finer_than_one_example():
    """Two shares of 50 examples, each rounded to one example, differ by the sum of two errors of rounding."""
    exact = np.random.default_rng(0).random((2, 100_000))
    errors = np.round(exact * 50) / 50 - exact
    assert intervals.share_coarseness(50) == pytest.approx((errors[0] - errors[1]).std(), rel=0.01)
    assert intervals.share_coarseness(None) == 0
