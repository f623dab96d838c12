"""Evidence on disk answers like evidence in memory."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from attnaudit.errors import RunFolderError
from attnaudit.protocol import Protocol
from attnaudit.records.evidence import Evidence
from attnaudit.records.rows import rows_of
from attnaudit.records.schema import Measurement, RowKey
from tests.measures.references.audits import simulated_heads


@pytest.fixture
def table():
    """Three heads under two references, two measures each, one of which could not be computed."""
    heads = simulated_heads(0, inputs=3, heads=1)
    values = {"procrustes": torch.tensor([1.0, 2.0, 3.0]), "linear_cka": torch.tensor([4.0, torch.nan, 6.0])}
    problems = {name: [None, "lost", None] for name in values}
    return rows_of(
        Measurement(heads, RowKey("kpca", name), values, problems, Protocol.EXACT) for name in ("observed", "planted")
    )


@pytest.fixture
def parts(table, tmp_path):
    """The same rows in four files, whose dictionaries differ."""
    paths = [tmp_path / f"part-{place}.parquet" for place in range(4)]
    for place, path in enumerate(paths):
        pq.write_table(pa.Table.from_pylist(table.slice(3 * place, 3).to_pylist(), schema=table.schema), path)
    return paths


def test_all_rows_come_back_in_order(table, parts):
    evidence = Evidence.of_parts(parts)
    assert len(evidence) == table.num_rows == 12
    assert evidence.table().equals(table)


@pytest.mark.parametrize("kept", [0, 12])
@pytest.mark.parametrize(
    "names", [{"measure": "procrustes"}, {"measure": ("linear_cka", "gone"), "reference": "planted"}]
)
def test_a_question_gets_the_same_answer_from_disk_and_memory(table, parts, names, kept, monkeypatch):
    monkeypatch.setattr("attnaudit.records.evidence.KEPT_ROWS", kept)
    found = [source.where("input", "value", **names) for source in (Evidence.of_parts(parts), Evidence.of_table(table))]
    assert found[0].to_pylist() == found[1].to_pylist()
    assert found[0].num_rows == (6 if len(names) == 1 else 3)


def test_combinations_are_named_in_order_of_appearance(parts):
    found = Evidence.of_parts(parts).combinations("reference", "measure")
    assert found == [(c, m) for c in ("observed", "planted") for m in ("procrustes", "linear_cka")]


def test_a_part_that_cannot_be_read_is_an_error_of_the_run(parts):
    evidence = Evidence.of_parts(parts)
    parts[2].unlink()
    with pytest.raises(RunFolderError, match="part-2"):
        evidence.table()
