"""The comparison of two runs of the same commands notices what moved, and only that."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.numbers_unmoved import compare, main

ROWS = {
    "model": ["a", "a", "a"],
    "layer": [0, 0, 1],
    "theory": ["kpca"] * 3,
    "reference": ["observed", "planted", "observed"],
    "measure": ["linear_cka"] * 3,
    "value": [0.5, 1e6, None],
    "reason": [None, None, "too large"],
}
VERDICTS = [
    {"claim": "kpca-values", "model": "a", "word": "refuted", "reason": "score 0.50 [0.40, 0.61] of 1,200 heads"},
    {"claim": "kpca-values", "model": "b", "word": "supported", "reason": "score 0.98"},
]
SUMMARY = {"models": {"a": {"observed": {"linear_cka": {"mean": 0.5, "n": 3}}}}, "verdicts": VERDICTS}


def written(folder, rows=ROWS, summary=SUMMARY):
    (folder / "run-minilm" / "evidence").mkdir(parents=True)
    table = pa.table(rows)
    for place in range(len(table)):  # in whatever parts
        pq.write_table(table.slice(place, 1), folder / "run-minilm" / "evidence" / f"part-{place}.parquet")
    (folder / "minilm.json").write_text(json.dumps(summary))
    return folder


@pytest.fixture
def old(tmp_path):
    return written(tmp_path / "old")


def test_the_same_numbers_are_all_compared(old, tmp_path, capsys):
    found = compare(old, written(tmp_path / "new"))["minilm"]
    assert found.compared == 3 + 2 + 5  # rows, statistics, numbers in sentences
    assert (found.words, found.largest, found.moved, found.added) == (2, 0.0, [], 0)
    assert main(["compare", str(old), str(old)]) == 0
    assert "2 verdicts; 0 moved" in capsys.readouterr().out


def test_names_of_before_order_and_wording_do_not_matter(tmp_path):
    before = {{"theory": "interpretation", "reference": "control"}.get(name, name): rows for name, rows in ROWS.items()}
    old = written(tmp_path / "old", rows=before)
    reworded = [VERDICTS[1], VERDICTS[0] | {"reason": "0.50, between 0.40 and 0.61, in 1,200 heads"}]
    backwards = {name: rows[::-1] for name, rows in ROWS.items()}
    found = compare(old, written(tmp_path / "new", rows=backwards, summary=SUMMARY | {"verdicts": reworded}))["minilm"]
    assert found.moved == []


def test_more_rows_are_counted_and_are_no_difference(old, tmp_path):
    more = {name: [*rows, rows[0]] for name, rows in ROWS.items()} | {"measure": ["linear_cka"] * 3 + ["another"]}
    found = compare(old, written(tmp_path / "new", rows=more))["minilm"]
    assert (found.moved, found.added) == ([], 1)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([0.5 + 2e-12, 1e6, None], id="moved"),
        pytest.param([0.5, 1e6 + 2e-6, None], id="moved by a part of itself"),
        pytest.param([None, 1e6, None], id="missing"),
        pytest.param([0.5, 1e6, 0.1], id="no longer missing"),
        pytest.param([0.5, float("nan"), None], id="not a number"),
    ],
)
def test_a_number_that_moved_is_named(old, tmp_path, values):
    new = written(tmp_path / "new", rows=ROWS | {"value": values})
    (moved,) = compare(old, new)["minilm"].moved
    assert "linear_cka" in moved
    assert main(["compare", str(old), str(new)]) == 1


def test_a_number_that_moved_less_than_the_tolerance_is_measured(old, tmp_path):
    found = compare(old, written(tmp_path / "new", rows=ROWS | {"value": [0.5 + 5e-13, 1e6, None]}))["minilm"]
    assert found.moved == []
    assert found.largest == pytest.approx(5e-13, rel=1e-3)


def test_a_row_that_is_gone_is_named(old, tmp_path):
    fewer = {name: rows[:2] for name, rows in ROWS.items()}
    (moved,) = compare(old, written(tmp_path / "new", rows=fewer))["minilm"].moved
    assert "gone" in moved


@pytest.mark.parametrize(
    "change", [{"word": "supported"}, {"reason": "score 0.51 [0.40, 0.61] of 1,200 heads"}, {"claim": "another"}]
)
def test_a_verdict_that_moved_is_named(old, tmp_path, change):
    summary = SUMMARY | {"verdicts": [VERDICTS[0] | change, VERDICTS[1]]}
    moved = compare(old, written(tmp_path / "new", summary=summary))["minilm"].moved
    assert moved
    assert all("kpca-values" in line for line in moved)
