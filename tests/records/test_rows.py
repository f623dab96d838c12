"""Rows that are made together are those that are made one by one."""

import weakref
from dataclasses import dataclass

import pyarrow as pa
import pytest
import torch

from attnaudit.protocol import Protocol
from attnaudit.records.head_id import HeadId
from attnaudit.records.notes import Notes
from attnaudit.records.parts import encode_part
from attnaudit.records.rows import rows_of
from attnaudit.records.schema import SCHEMA, Measurement, RowKey


@dataclass(frozen=True)
class Batch:
    index: tuple[HeadId, ...]
    tokens: int = 7
    dim: int = 5


def measurement(layer, key, values, problems=None, names=("cat.png", "dog.png")):
    heads = Batch(tuple(HeadId("vit", name, layer, head) for name in names for head in range(2)))
    tensors = {name: torch.as_tensor(own) for name, own in values.items()}
    known = {name: (problems or {}).get(name, (None,) * len(heads.index)) for name in tensors}
    return Measurement(heads, key, tensors, known, Protocol.EXACT)


@pytest.fixture
def measurements():
    """Layers with several references and inputs, and numbers that are missing with and without a reason."""
    nan = float("nan")
    return [
        measurement(0, RowKey("kpca"), {"a": [1.0, 2.0, 3.0, 4.0], "b": torch.tensor([1, 2, 3, 4])}),
        measurement(0, RowKey("kpca", "planted", 3), {"a": [nan, 2.0, nan, 4.0]}, {"a": ["lost", None, None, "lost"]}),
        measurement(1, RowKey("pca"), {"c": torch.tensor([0.5, float("inf")])}, {"c": ["x", "lost"]}, ["emu.png"]),
        measurement(1, RowKey("pca"), {}),
        measurement(2, RowKey("pca"), {"c": torch.zeros(0)}, names=[]),
    ]


def test_rows_made_together_are_those_made_one_by_one(measurements):
    together = rows_of(measurements)
    apart = pa.concat_tables([rows_of([own]) for own in measurements])
    assert together.schema == SCHEMA
    assert together.to_pylist() == apart.to_pylist()
    assert encode_part("key", together, Notes()) == encode_part("key", apart, Notes())


def test_a_row_says_where_its_number_comes_from(measurements):
    found = rows_of(measurements).slice(8, 2).to_pylist()
    place = {"model": "vit", "input": "cat.png", "layer": 0, "window": 0, "tokens": 7, "dim": 5, "step": None}
    asked = {"theory": "kpca", "reference": "planted", "repeat": 3, "measure": "a", "protocol": "exact"}
    assert found == [
        {**place, **asked, "head": 0, "value": None, "reason": "lost"},
        {**place, **asked, "head": 1, "value": 2.0, "reason": None},
    ]


def test_a_number_that_is_not_finite_is_missing_with_a_reason(measurements):
    found = rows_of(measurements)
    lost = [(row["measure"], row["reason"]) for row in found.to_pylist() if row["value"] is None]
    assert lost == [("a", "lost"), ("a", "a is not finite"), ("c", "lost")]
    assert found["reason"].null_count == found.num_rows - len(lost)


def test_the_numbers_of_many_measurements_are_copied_together(monkeypatch):
    copies = []
    cat = torch.cat
    monkeypatch.setattr("torch.cat", lambda tensors: copies.append(len(tensors)) or cat(tensors))
    found = rows_of(measurement(layer, RowKey("kpca"), {"a": [float(layer)] * 4}) for layer in range(300))
    assert found["value"].to_pylist() == [float(layer) for layer in range(300) for _ in range(4)]
    assert copies == [256, 44]


def test_measurements_are_let_go_one_by_one():
    seen = []

    def measured():
        for layer in range(3):
            own = measurement(layer, RowKey("kpca"), {"a": [1.0] * 4})
            seen.append(weakref.ref(own.heads))
            yield own
            del own
            assert layer == 0 or seen[layer - 1]() is None

    assert rows_of(measured()).num_rows == 12


def test_a_tensor_of_the_wrong_length_is_refused():
    with pytest.raises(RuntimeError, match="shape"):
        rows_of([measurement(0, RowKey("kpca"), {"a": [1.0, 2.0]})])


def test_no_measurements_are_no_rows():
    assert rows_of([]).equals(SCHEMA.empty_table())
