"""Rows of a monitor are kept by step, and read as numbers and a line."""

import json
import logging

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch

from attnaudit.claims import kpca_eigenvectors, kpca_projection, kpca_values
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.records.run_folder import RunFolder
from attnaudit.training import Monitor
from attnaudit.training.monitor_log import ALIGNMENT, read
from tests.training.networks import batch, network, train
from tests.training.rows import quiet, value


def test_a_line_is_told_or_logged(caplog):
    lines = []
    monitor = Monitor(network(), {"train": batch(), "test": batch(seed=2)}, tell=lines.append)
    monitor.measure(1500)
    (line,) = lines
    assert repr(monitor.latest) == f"Reading({line})"
    assert line.startswith("step 1,500  train: J ")
    for part in ("‖φ‖²", "‖h‖²", "kernel PCA explains", "0 is chance, 1 the claim", "|  test: J "):
        assert part in line
    with caplog.at_level(logging.INFO, logger="attnaudit.training"):
        Monitor(network(), batch(), scores=0).measure(0)
    assert [record.name for record in caplog.records] == ["attnaudit.training"]
    assert "alignment" not in caplog.text


def test_heads_with_too_few_tokens_are_said_to_decide_nothing():
    lines = []
    Monitor(network(), batch()[:, :6], tell=lines.append).measure(0)
    assert "alignment not identifiable" in lines[0]


@pytest.mark.parametrize(("floor", "shown"), [(0.25, True), (-1e9, False), (1e9, False)])
def test_a_share_that_is_none_is_not_shown(floor, shown):
    """A floor that is rounding over a norm that is rounding can be anything."""
    table = Monitor(network(), batch(), tell=lambda line: None).measure(0)
    measure = pc.cast(table["measure"], "string")
    norms, floors = pc.equal(measure, "phi_norm2"), pc.equal(measure, "projection_error_floor")
    values = pc.if_else(norms, 1.0, pc.if_else(floors, floor, table["value"]))
    changed = table.set_column(table.schema.get_field_index("value"), "value", values)
    model = table["model"][0].as_py()
    (reading,) = read(0, changed, ["batch"], model).batches.values()
    assert (reading.explained == pytest.approx(0.75)) if shown else (reading.explained is None)
    assert ("kernel PCA explains 75%" in reading.line) == shown


def test_every_measure_that_decides_a_claim_about_kernel_pca_is_scored():
    claims = (kpca_values.CLAIM, kpca_eigenvectors.CLAIM, kpca_projection.CLAIM)
    assert tuple(dict.fromkeys(name for claim in claims for name in claim.decided_by)) == ALIGNMENT


def test_evidence_is_kept_by_step_and_found_again(tmp_path):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Monitor(model, batch(), out=tmp_path / "run", every=2, tell=quiet).attach(optimizer) as monitor:
        train(model, 5, optimizer)
    assert sorted(set(monitor.evidence["step"].to_pylist())) == [0, 2, 4]
    train(model, 5, optimizer)
    assert len(monitor.history) == 3, "it was detached"
    settings = json.loads((tmp_path / "run" / "run.json").read_text())
    assert list(settings["steps"]) == ["0", "2", "4"]
    assert settings["parts"] == list(settings["steps"].values())
    assert settings["identity"]["monitor"]["mode"] == {"batch": "eval"}
    assert "torch" in settings["versions"]
    assert pq.read_table(tmp_path / "run" / "evidence").num_rows == len(monitor.rows)
    again = Monitor(model, batch(), out=tmp_path / "run", every=3, tell=quiet)
    again.attach(optimizer, step=4)
    train(model, 2, optimizer)
    assert sorted(set(again.evidence["step"].to_pylist())) == [0, 2, 4, 6]


def test_a_step_measured_again_replaces_itself(tmp_path):
    model = network()
    for out in (None, tmp_path / "run"):
        monitor = Monitor(model, batch(), out=out, tell=quiet)
        first = monitor.measure(12)
        with torch.no_grad():
            model.blocks[0].qkv.weight.mul_(1.5)
        monitor.measure(9)
        second = monitor.measure(12)
        rows = monitor.evidence
        assert rows.num_rows == 2 * first.num_rows
        assert value(rows, "phi_norm2", step=12) == value(second, "phi_norm2") != value(first, "phi_norm2")
        assert rows["step"].to_pylist() == sorted(rows["step"].to_pylist())


def test_parts_go_into_the_folder_of_another_owner(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.open({"recipe": "mine"}, {"parts": ["something-else"]})
    monitor = Monitor(network(), batch(), out=folder, tell=quiet)
    table = monitor.measure(0)
    settings = folder.header()
    assert settings["identity"] == {"recipe": "mine"}
    assert settings["parts"] == ["something-else", settings["steps"]["0"]]
    assert len(monitor.rows) == table.num_rows


def test_a_step_measured_again_on_other_inputs_replaces_itself_in_anothers_folder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.open({"recipe": "mine"}, {})
    for inputs in (batch(), batch(seed=9)):
        table = Monitor(network(), inputs, out=folder, tell=quiet).measure(0)
    assert folder.parts.evidence(folder.header()["parts"]).table()["value"].to_pylist() == table["value"].to_pylist()


def test_a_folder_of_another_run_is_refused(tmp_path):
    Monitor(network(), batch(), out=tmp_path / "run", tell=quiet).measure(0)
    with pytest.raises(RunFolderError, match="holds a run with other inputs"):
        Monitor(network(), batch(seed=9), out=str(tmp_path / "run")).measure(0)
    with pytest.raises(RunFolderError, match="holds a run with other monitor"):
        Monitor(network(), batch(), out=tmp_path / "run", mode="train").measure(0)


def test_the_layers_of_the_last_reading_are_a_table_with_whole_batches_first(tmp_path):
    for out in (None, tmp_path / "run"):
        monitor = Monitor(network(), {"a": batch(), "b": batch(seed=2)}, out=out, tell=quiet)
        with pytest.raises(UsageError, match="Nothing was measured yet"):
            monitor.layers()
        monitor.measure(0)
        rows = monitor.measure(4)
        found = monitor.layers().to_pylist()
        assert [(row["batch"], row["layer"], row["heads"]) for row in found] == [
            *(("a", 0, 2), ("a", 1, 2)),
            *(("b", 0, 2), ("b", 1, 2)),
        ]
        whole = [value(rows, "phi_norm2", batch="a", head=head) for head in (0, 1)]
        assert found[0]["phi_norm2"] == pytest.approx(sum(whole) / 2)
        (first, *_) = monitor.latest.batches["a"].scores["procrustes"].layers
        assert found[0]["procrustes score"] == first.score.mean
