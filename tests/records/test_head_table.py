"""From rows to heads x references."""

import numpy as np
import pyarrow as pa
import pytest

from attnaudit.records.evidence import Evidence
from attnaudit.records.head_table import head_table
from attnaudit.records.schema import IDENTIFIABLE, SCHEMA


def row(
    value,
    *,
    image="a",
    layer=0,
    head=0,
    window=0,
    reference="observed",
    repeat=0,
    measure="m",
    theory="kpca",
    model="vit",
):
    named = {"model": model, "input": image, "head": head, "reference": reference, "repeat": repeat, "theory": theory}
    fixed = {"protocol": "exact", "tokens": 40, "dim": 8, "reason": None, "step": None}
    return named | fixed | {"layer": layer, "window": window, "measure": measure, "value": value}


def table(*rows, groups=None):
    evidence = Evidence.of_table(pa.Table.from_pylist(list(rows), schema=SCHEMA))
    return head_table(evidence, "vit", "m", "kpca", groups)


def test_a_row_per_head_and_a_column_per_reference():
    found = table(
        row(1.0),
        row(2.0, head=1),
        row(3.0, image="b"),
        row(0.5, reference="gaussian"),
        row(9.0, measure="another"),
        row(9.0, theory="pca"),
        row(9.0, model="deit"),
    )
    assert found.inputs.tolist() == [0, 0, 1]
    assert found.references["observed"].tolist() == [1, 2, 3]
    assert found.references["gaussian"] == pytest.approx([0.5, np.nan, np.nan], nan_ok=True)
    assert (len(found), found.unidentifiable) == (3, 0)


def test_every_row_knows_its_head():
    found = table(row(1.0, layer=1, head=2), row(2.0), row(3.0, image="b", layer=1, head=2), row(4.0, head=1))
    assert [tuple(found.names[head]) for head in found.heads] == [(0, 0), (0, 1), (1, 2), (1, 2)]
    assert found.references["observed"].tolist() == [2, 4, 1, 3]


def test_inputs_of_one_group_have_one_number_and_keep_their_rows():
    rows = [row(float(place), image=name) for place, name in enumerate("abcd")]
    found = table(*rows, groups={"b": "film", "d": "film"})
    assert found.references["observed"].tolist() == [0, 1, 2, 3]
    assert found.inputs[1] == found.inputs[3]
    assert len(np.unique(found.inputs)) == 3


def test_repeats_are_averaged_and_missing_ones_left_out():
    values = [1.0, 3.0, None, float("nan")]
    found = table(row(0.0), *(row(v, reference="gaussian", repeat=place) for place, v in enumerate(values)))
    assert found.references["gaussian"].tolist() == [2.0]
    assert found.repeats["gaussian"].tolist() == [pytest.approx([1.0, 3.0, np.nan, np.nan], nan_ok=True)]


def test_windows_of_one_input_and_head_come_to_one_row():
    found = table(
        row(1.0),
        row(3.0, window=1),
        row(7.0, window=1, head=1),
        *(row(own, window=window, reference="gaussian") for window, own in enumerate((10.0, 20.0))),
    )
    assert found.references["observed"].tolist() == [2, 7]
    assert found.references["gaussian"] == pytest.approx([15, np.nan], nan_ok=True)


def test_a_head_that_the_guard_of_the_theory_refuses_is_counted_and_left_out():
    found = table(
        row(1.0),
        row(2.0, head=1),
        row(1.0, measure=IDENTIFIABLE),
        row(None, head=1, measure=IDENTIFIABLE),
        row(None, measure=IDENTIFIABLE, theory="pca"),
    )
    assert found.references["observed"].tolist() == [1.0]
    assert (len(found), found.unidentifiable) == (1, 1)


def test_no_rows_make_an_empty_table():
    found = table()
    assert (len(found), found.references, found.unidentifiable) == (0, {}, 0)
