"""Evidence by layer."""

import pyarrow as pa
import pytest

from attnaudit.records.layer_table import LayerMeans, layer_table
from attnaudit.records.verdict import LayerScore, MeanEstimate, Score


def row(layer, head, measure, value, reference="observed"):
    return {"model": "a", "layer": layer, "head": head, "measure": measure, "value": value, "reference": reference}


ROWS = pa.Table.from_pylist(
    [
        row(1, 0, "cka", 3.0),
        row(0, 0, "cka", 1.0),
        row(0, 1, "cka", 2.0),
        row(0, 1, "cka", 100.0, "planted"),
        row(0, 0, "identifiable", 1.0),
        row(1, 0, "angle", None),
    ]
)


def test_layers_are_rows_in_order_and_measures_are_columns():
    found = layer_table(LayerMeans.of_rows(ROWS, ("model",)), ("model",), {})
    assert found.to_pylist() == [
        {"model": "a", "layer": 0, "heads": 2, "cka": 1.5, "angle": None},
        {"model": "a", "layer": 1, "heads": 1, "cka": 3.0, "angle": None},
    ]


def test_scores_stand_after_the_measures_where_a_layer_has_one():
    score = Score("cka", layers=(LayerScore(1, MeanEstimate(0.25, None)),))
    found = layer_table(LayerMeans.of_rows(ROWS, ("model",)), ("model",), {("a",): [score]})
    assert found.column_names[-1] == "cka score"
    assert found["cka score"].to_pylist() == [None, pytest.approx(0.25)]


def test_no_rows_give_an_empty_table():
    assert layer_table(LayerMeans.of_rows(ROWS.slice(0, 0), ("model",)), ("model",), {}).num_rows == 0
