import numpy as np
import pytest

from attnaudit.audit import summary
from attnaudit.statistics.intervals import bootstrap_interval


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
    monkeypatch.setattr(summary, "_DRAWN_AT_ONCE", 1000)
    assert bootstrap_interval(means, seed=5) == at_once


def test_a_constant_has_an_interval_of_no_width():
    assert bootstrap_interval(np.full(5, 2.0), seed=0) == pytest.approx((2.0, 2.0))
