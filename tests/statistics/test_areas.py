"""The area under a curve against scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from attnaudit.statistics.areas import area_under_precision_recall


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
