import numpy as np
import pytest

from attnaudit.statistics.rows import Rows


def test_the_offset_is_the_error_of_one_projection_beside_the_mean_of_several():
    """Of a head the mean of its rows counts, and the spread of its repeats is pooled with that of other heads."""
    rows = Rows(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    draws = np.array([[1.0, 2, 3], [5, 5, 8], [3, 2, 1], [5, 5, 8]])
    found = rows.offset(draws)
    variance = (np.var([2, 2, 2], ddof=1) + np.var([5, 5, 8], ddof=1)) / 2
    assert found.deviation == pytest.approx((variance * (1 + 1 / 3)) ** 0.5)
    assert found.freedom == 2 * (3 - 1)


def test_one_draw_or_one_that_is_missing_says_nothing_of_the_spread():
    rows = Rows(np.array([0, 1]), np.array([0, 0]))
    assert rows.offset(np.array([[1.0], [2.0]])) is None
    assert rows.offset(np.array([[1.0, 2.0], [2.0, np.nan]])) is None
