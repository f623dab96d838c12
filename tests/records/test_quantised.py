"""Numbers as bytes: wrong by half a step at most, and the same after storing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnaudit.records.quantised import QuantisedRows

ROWS = hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 9)), elements=st.floats(-1e6, 1e6, width=32))


@given(ROWS)
def test_every_number_is_within_half_a_step(rows):
    kept = QuantisedRows.of(rows)
    step = (rows.max(axis=1) - rows.min(axis=1))[:, None] / 255
    rounding = 1e-6 * np.abs(rows).max(axis=1, keepdims=True)
    assert (np.abs(kept.decoded() - rows) <= step / 2 + rounding).all()


@given(ROWS)
def test_storing_changes_nothing(rows):
    kept = QuantisedRows.of(rows)
    again = QuantisedRows.from_plain(kept.plain())
    np.testing.assert_array_equal(again.decoded(), kept.decoded())


def test_a_known_lowest_number_is_exact():
    kept = QuantisedRows.of(np.array([[0.25, 1.0, 0.5]]), low=0.0)
    assert kept.low == 0
    assert kept.codes.tolist() == [[64, 255, 128]]
