"""Areas under curves against scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from attnaudit.statistics.areas import area_under_curve, area_under_precision_recall


def test_area_under_curve_equals_scikit_learns():
    generator = np.random.default_rng(0)
    positive, negative = generator.integers(0, 8, 50).astype(float), generator.integers(0, 6, 70).astype(float)
    labels = np.r_[np.ones(50), np.zeros(70)]
    assert area_under_curve(positive, negative) == pytest.approx(roc_auc_score(labels, np.r_[positive, negative]))


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.5, 0.9]) | st.floats(-1, 1)), min_size=2).filter(
        lambda rows: any(truth for truth, _ in rows)
    )
)
def test_the_area_is_scikit_learns(rows):
    truth, scores = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    assert area_under_precision_recall(truth, scores) == pytest.approx(average_precision_score(truth, scores))


def test_without_positives_there_is_no_area():
    assert math.isnan(area_under_precision_recall([False, False], [0.1, 0.2]))
