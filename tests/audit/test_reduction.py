"""What the rows of a measure come to."""

import numpy as np
import pyarrow as pa
import pytest

from attnaudit.audit.reduction import input_means, reductions, with_intervals
from attnaudit.statistics.intervals import bootstrap_interval

SCHEMA = pa.schema(
    [(name, pa.dictionary(pa.int32(), pa.string())) for name in ("input", "reference", "reason")]
    + [("value", pa.float64())]
)


def table(*rows):
    columns = ("input", "reference", "value", "reason")
    return pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema=SCHEMA)


def test_every_reference_has_a_statistic_of_its_own_in_order_of_appearance():
    rows = table(("b", "planted", 1.0, None), ("a", "observed", 5.0, None), ("a", "planted", 3.0, None))
    found = reductions(rows, {})
    assert list(found) == ["planted", "observed"]
    assert found["planted"].statistic.mean == found["planted"].statistic.median == 2.0
    assert (found["planted"].statistic.min, found["planted"].statistic.max, found["planted"].statistic.n) == (
        1.0,
        3.0,
        2,
    )
    assert found["planted"].input_means.tolist() == [3.0, 1.0]


def test_the_spread_is_that_of_the_means_of_inputs():
    values = {"a": (0.0, 4.0), "b": (1.0, 9.0)}
    rows = table(*((name, "observed", value, None) for name, own in values.items() for value in own))
    assert reductions(rows, {})["observed"].statistic.input_std == pytest.approx(np.std([2, 5], ddof=1))


def test_missing_numbers_are_counted_by_reason():
    lost = [("a", "observed", None, "lost"), ("a", "observed", float("nan"), None), ("b", "observed", None, "lost")]
    statistic = reductions(table(*lost, ("a", "observed", 2.0, None)), {})["observed"].statistic
    assert (statistic.n, dict(statistic.rejected)) == (1, {"lost": 2, "no reason given": 1})
    nothing = reductions(table(*lost), {})["observed"].statistic
    assert (nothing.n, nothing.mean, nothing.lost) == (0, None, 3)


def test_inputs_are_the_sampling_unit_of_intervals():
    generator = np.random.default_rng(0)
    rows = [(f"{place:02}", "observed", float(value), None) for value in generator.random(3) for place in range(9)]
    (statistic,) = with_intervals(list(reductions(table(*rows), {}).values()), seed=4)
    assert statistic.interval == bootstrap_interval(input_means(table(*rows), {}), seed=4)


def test_inputs_of_one_group_count_as_one():
    rows = table(*((name, "observed", value, None) for name, value in zip("dabc", (8.0, 1.0, 3.0, 5.0), strict=True)))
    groups = {"a": "film", "c": "film"}
    (found,) = reductions(rows, groups).values()
    assert found.input_means.tolist() == input_means(rows, groups).tolist() == [3.0, 8.0, 3.0]  # b, d, film
    assert (found.statistic.mean, found.statistic.n) == (4.25, 4)
    assert found.statistic.input_std == pytest.approx(np.std([3, 8, 3], ddof=1))
    (statistic,) = with_intervals([found], seed=4)
    assert statistic.interval == bootstrap_interval(np.array([3.0, 8.0, 3.0]), seed=4)


def test_one_group_has_no_interval():
    rows = table(("a", "observed", 1.0, None), ("b", "observed", 2.0, None))
    (statistic,) = with_intervals(list(reductions(rows, {"a": "film", "b": "film"}).values()), seed=0)
    assert (statistic.interval, statistic.input_std) == (None, None)


def test_means_of_inputs_are_finite_where_their_sum_is_not():
    rows = table(("a", "observed", 1.5e308, None), ("b", "observed", 1.0, None), ("a", "observed", 1.7e308, None))
    assert input_means(rows, {}).tolist() == pytest.approx([1.6e308, 1.0])


def test_names_of_inputs_need_no_dictionary():
    rows = table(("b", "observed", 1.0, None), ("a", "observed", 2.0, None))
    plain = rows.set_column(0, "input", rows["input"].cast(pa.string()))
    assert input_means(plain, {}).tolist() == input_means(rows, {}).tolist() == [2.0, 1.0]
