"""Sketches: quantiles that are right up to a share of themselves, whatever came first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attnaudit.records.sketch import ERROR, OrderedValues, Sketch

SIZES = st.floats(1e-9, 1e9)
NUMBERS = arrays.arrays(float, st.integers(1, 100), elements=st.one_of(st.just(0.0), SIZES, SIZES.map(lambda x: -x)))


@given(NUMBERS, st.integers(2, 50))
def test_every_rank_is_right_up_to_a_share_of_itself(values, number):
    exact, found = (own.evenly_ranked(number) for own in (OrderedValues(np.sort(values)), Sketch.of(values)))
    assert len(found) == len(exact)
    assert np.all(np.abs(found - exact) <= ERROR * np.abs(exact) * (1 + 1e-9))
    assert (found[0], found[-1]) == (values.min(), values.max())


@given(NUMBERS, st.randoms())
def test_the_order_of_the_numbers_makes_no_difference(values, random):
    other = values.tolist()
    random.shuffle(other)
    assert Sketch.of(np.array(other)) == Sketch.of(values)


def test_many_numbers_take_few_buckets():
    values = np.random.default_rng(0).uniform(0.1, 1, 100_000)
    assert len(Sketch.of(values).positive) <= np.log(10) / np.log((1 + ERROR) / (1 - ERROR)) + 2


def test_numbers_that_are_as_good_as_0_are_0():
    found = Sketch.of(np.array([-1e-15, 0.0, 1e-14, 1.0]))
    assert found.zeros == 3
    assert found.evenly_ranked(4)[1:] == pytest.approx([0, 0, 1])


def test_no_numbers_have_no_sketch():
    assert Sketch.of(np.empty(0)) is None
