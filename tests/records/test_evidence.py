"""Evidence on disk answers like evidence in memory."""

from dataclasses import replace
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch

from attnaudit.api.audits import conclude
from attnaudit.audit.settings import AuditSettings
from attnaudit.audit.summary import statistics, summarise
from attnaudit.claims import RecordKind
from attnaudit.claims.registry import claims_about
from attnaudit.errors import RunFolderError
from attnaudit.protocol import Protocol
from attnaudit.records.audit import open_audit
from attnaudit.records.evidence import Evidence
from attnaudit.records.head_rows import HeadRows
from attnaudit.records.notes import Notes
from attnaudit.records.rows import rows_of
from attnaudit.records.schema import Measurement, RowKey
from attnaudit.report.references import reference_figure
from tests.measures.references.audits import simulated_heads
from tests.report.synthetic import REFERENCES, write_run


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


#: Where rows are kept that were read: in memory, in files, in both.
KEPT = {"memory": (100, 100), "memory, in portions": (3, 100), "files": (3, 0), "both": (3, 6)}


@pytest.fixture(params=KEPT)
def kept(request, monkeypatch):
    at_once, in_memory = KEPT[request.param]
    monkeypatch.setattr("attnaudit.records.grouped_rows.SORTED_AT_ONCE", at_once)
    monkeypatch.setattr("attnaudit.records.grouped_rows.ROWS_IN_MEMORY", in_memory)


@pytest.mark.parametrize(
    "names", [{"measure": "procrustes"}, {"measure": ("linear_cka", "gone"), "reference": "planted"}, {"model": "gone"}]
)
@pytest.mark.parametrize("columns", [("input", "value"), ("measure", "reason", "theory"), ("tokens", "reference"), ()])
@pytest.mark.usefixtures("kept")
def test_a_question_gets_the_rows_with_these_names(table, parts, names, columns):
    asked = [pc.field(name).isin([of] if isinstance(of, str) else list(of)) for name, of in names.items()]
    expected = table.filter(reduce(and_, asked)).select(list(columns) or table.column_names).to_pylist()
    for source in (Evidence.of_parts(parts), Evidence.of_table(table)):
        assert source.where(*columns, **names).to_pylist() == expected


@pytest.mark.usefixtures("kept")
def test_rows_of_one_measure_come_together_in_the_order_of_their_writing(table, parts):
    found = Evidence.of_parts(parts).where("measure", "reference", "input").to_pylist()
    assert found == sorted(
        table.select(["measure", "reference", "input"]).to_pylist(), key=lambda row: row["measure"], reverse=True
    )


def test_rows_stay_in_memory_if_there_is_no_room_for_a_temporary_file(table, parts, monkeypatch):
    def full():
        raise OSError("no space left on device")

    monkeypatch.setattr("attnaudit.records.grouped_rows.ROWS_IN_MEMORY", 0)
    monkeypatch.setattr("tempfile.TemporaryFile", full)
    assert Evidence.of_parts(parts).where("value").num_rows == table.num_rows


class CountedReads:
    """A dataset that counts how often its rows are read."""

    def __init__(self, dataset):
        self._dataset, self.schema, self.reads = dataset, dataset.schema, 0

    def get_fragments(self):
        self.reads += 1
        return self._dataset.get_fragments()

    def to_batches(self, **options):
        self.reads += 1
        return self._dataset.to_batches(**options)


def test_the_rows_of_a_run_are_read_once_for_statistics_verdicts_figures_and_page(tmp_path):
    run = open_audit(write_run(tmp_path / "run"))
    rows = CountedReads(run.rows._dataset)
    evidence = Evidence(rows)
    selection = AuditSettings(references=REFERENCES[1:]).selection()
    summary = summarise(statistics(evidence, selection, {}), Notes(), selection)
    judged = conclude(replace(run, summary=summary, heads=HeadRows(evidence)), claims_about(RecordKind.AUDIT))
    reference_figure(judged, tmp_path / "references.svg")
    judged.report()
    assert judged.verdicts
    assert rows.reads == 1


def test_combinations_are_named_in_order_of_appearance(parts):
    found = Evidence.of_parts(parts).combinations("reference", "measure")
    assert found == [(c, m) for c in ("observed", "planted") for m in ("procrustes", "linear_cka")]


def test_a_part_that_cannot_be_read_is_an_error_of_the_run(parts):
    evidence = Evidence.of_parts(parts)
    parts[2].unlink()
    with pytest.raises(RunFolderError, match="part-2"):
        evidence.table()
