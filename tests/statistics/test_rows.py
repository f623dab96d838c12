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


def test_one_draw_says_nothing_of_the_spread():
    rows = Rows(np.array([0, 1]), np.array([0, 0]))
    assert rows.offset(np.array([[1.0], [2.0]])) is None
    assert rows.offset(np.array([[1.0, np.nan], [2.0, np.nan]])) is None


def test_a_draw_that_is_missing_in_one_row_does_not_hide_the_spread_of_the_others():
    rows = Rows(np.array([0, 1, 2]), np.array([0, 0, 1]))
    draws = np.array([[1.0, 2.0, 6.0], [21.0, np.nan, 25.0], [5.0, np.nan, np.nan]])
    # Of the head that has several: -2, -1, 3 and -2, -, 2 about the means of the rows.
    assert rows.offset(draws).deviation == pytest.approx((np.var([-2, -1, 2.5], ddof=1) * (1 + 1 / 3)) ** 0.5)
    assert rows.offset(draws).freedom == 2
