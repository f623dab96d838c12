import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attnaudit.records.moments import Moments
from attnaudit.statistics.means import discoveries, mean_interval, probability_above

DRAW = {
    "normal": (lambda generator, size: generator.standard_normal(size), 0.0),
    "skewed": (lambda generator, size: generator.gamma(2.0, 1.0, size), 2.0),
    "exponential": (lambda generator, size: generator.exponential(1.0, size), 1.0),
    "heavy tails": (lambda generator, size: generator.standard_t(3, size), 0.0),
    "outliers": (
        lambda generator, size: generator.standard_normal(size) * np.where(generator.random(size) < 0.05, 5, 1),
        0.0,
    ),
}
values = st.lists(st.floats(-100, 100), min_size=2, max_size=30).map(np.array)


@pytest.mark.parametrize("kind", DRAW)
@pytest.mark.parametrize("count", [8, 12, 25, 50])
def test_intervals_miss_within_a_third_of_what_they_state(kind, count):
    draw, mean = DRAW[kind]
    generator = np.random.default_rng(count)
    samples = 2000
    intervals = (mean_interval(row) for row in draw(generator, (samples, count)))
    missed = sum(not low <= mean <= high for low, high in intervals) / samples
    noise = 3 * (0.05 * 0.95 / samples) ** 0.5
    assert 0.05 * 2 / 3 - noise <= missed <= 0.05 * 4 / 3 + noise


@given(values, st.floats(-3, 3), st.floats(0.1, 10))
def test_intervals_move_and_stretch_with_the_values(x, shift, factor):
    low, high = mean_interval(x)
    moved = mean_interval(shift + factor * x)
    assert moved == pytest.approx((shift + factor * low, shift + factor * high), rel=1e-6, abs=1e-6)


@given(values)
def test_intervals_mirror_with_the_values(x):
    low, high = mean_interval(x)
    assert mean_interval(-x) == pytest.approx((-high, -low), rel=1e-9, abs=1e-9)


@given(values, st.floats(-100, 100), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_a_p_value_and_an_interval_say_the_same(x, threshold, level):
    low, _ = mean_interval(x, level)
    if abs(low - threshold) > 1e-6 * (1 + abs(low)):
        assert (probability_above(Moments.of(x), threshold) < (1 - level) / 2) == (low > threshold)


def test_values_without_skewness_have_students_interval():
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    assert mean_interval(x) == pytest.approx(stats.t.interval(0.95, 4, 0, x.std(ddof=1) / 5**0.5))


def test_one_value_has_no_interval_and_decides_nothing():
    assert mean_interval(np.array([1.0])) is None
    assert probability_above(Moments.of(np.array([1.0])), 0.0) == 1


def test_equal_values_are_their_own_interval():
    x = np.full(8, 0.75)
    assert mean_interval(x) == (0.75, 0.75)
    assert probability_above(Moments.of(x), 0.5) == 0
    assert probability_above(Moments.of(x), 0.75) == 1


def test_discoveries_are_those_of_scipy():
    generator = np.random.default_rng(0)
    for _ in range(50):
        p = generator.random(20) ** 3
        assert (discoveries(p, 0.1) == (stats.false_discovery_control(p) <= 0.1)).all()
    assert not discoveries(np.array([])).any()


def test_numbers_whose_cubes_overflow_have_the_same_interval_in_their_units():
    values = np.array([1.0, 2.0, 4.0, 3.0, 2.5])
    low, high = mean_interval(values)
    assert mean_interval(values * 1e200) == pytest.approx((low * 1e200, high * 1e200))
