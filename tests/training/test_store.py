"""Rows of a monitor are kept by step, and a step that is measured again replaces itself."""

import json

import pyarrow.parquet as pq
import pytest
import torch

from attnaudit.errors import RunFolderError
from attnaudit.records.run_folder import RunFolder
from attnaudit.training import Monitor
from tests.training.networks import batch, network, train
from tests.training.rows import quiet, value


def test_evidence_is_kept_by_step_and_found_again(tmp_path):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Monitor(model, batch(), out=tmp_path / "run", every=2, tell=quiet).attach(optimizer) as monitor:
        train(model, 5, optimizer)
    assert sorted(set(monitor.evidence.table()["step"].to_pylist())) == [0, 2, 4]
    train(model, 5, optimizer)
    assert len(monitor.history) == 3, "it was detached"
    settings = json.loads((tmp_path / "run" / "run.json").read_text())
    assert list(settings["steps"]) == ["0", "2", "4"]
    assert settings["parts"] == list(settings["steps"].values())
    assert settings["identity"]["monitor"]["mode"] == {"batch": "eval"}
    assert "torch" in settings["versions"]
    assert pq.read_table(tmp_path / "run" / "evidence").num_rows == len(monitor.evidence)
    again = Monitor(model, batch(), out=tmp_path / "run", every=3, tell=quiet)
    again.attach(optimizer, step=4)
    train(model, 2, optimizer)
    assert sorted(set(again.evidence.table()["step"].to_pylist())) == [0, 2, 4, 6]


def test_a_step_measured_again_replaces_itself(tmp_path):
    model = network()
    for out in (None, tmp_path / "run"):
        monitor = Monitor(model, batch(), out=out, tell=quiet)
        first = monitor.measure(12)
        with torch.no_grad():
            model.blocks[0].qkv.weight.mul_(1.5)
        monitor.measure(9)
        second = monitor.measure(12)
        rows = monitor.evidence.table()
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
    assert len(monitor.evidence) == table.num_rows


def test_a_step_measured_again_on_other_inputs_replaces_itself_in_anothers_folder(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.open({"recipe": "mine"}, {})
    for inputs in (batch(), batch(seed=9)):
        table = Monitor(network(), inputs, out=folder, tell=quiet).measure(0)
    assert folder.evidence_so_far().table()["value"].to_pylist() == table["value"].to_pylist()


def test_a_folder_of_another_run_is_refused(tmp_path):
    Monitor(network(), batch(), out=tmp_path / "run", tell=quiet).measure(0)
    with pytest.raises(RunFolderError, match="holds a run with other inputs"):
        Monitor(network(), batch(seed=9), out=str(tmp_path / "run")).measure(0)
    with pytest.raises(RunFolderError, match="holds a run with other monitor"):
        Monitor(network(), batch(), out=tmp_path / "run", mode="train").measure(0)
