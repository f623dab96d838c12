"""Costs are measured only where they can be written, and without the work of a progress bar."""

import io

import pytest
from rich.console import Console

from attnaudit.api import costs
from attnaudit.api.costs import cost
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.records import json_file
from attnaudit.records.cost import COST_FILE
from attnaudit.report import progress
from tests.cost.tables import table


@pytest.fixture
def measured(monkeypatch):
    """How often something was measured; it takes no time."""
    calls = []

    def measure(*_, progress, **__):
        calls.append(0)
        progress(0, 1, "tiny, softmax")
        return table()

    monkeypatch.setattr(costs, "measure_costs", measure)
    return calls


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_measured(measured, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="file cannot be written"):
        cost(["tiny"], device="cpu", out=tmp_path / "file")
    assert not measured


@pytest.mark.parametrize("recorded", [True, False])
def test_the_folder_of_a_run_is_refused_and_left_as_it_was(measured, tmp_path, recorded):
    json_file.write(tmp_path / COST_FILE, table())
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text("{}")
    with pytest.raises(RunFolderError, match="is a run folder: give --out another folder"):
        cost(["tiny"], device="cpu", recorded=tmp_path if recorded else None, out=run)
    assert not measured
    assert [file.name for file in run.iterdir()] == ["run.json"]


def test_what_cannot_be_measured_leaves_no_folder(measured, tmp_path):
    with pytest.raises(UsageError):
        cost(["huge"], device="cpu", out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_no_bar_is_drawn_in_a_terminal(measured, monkeypatch):
    stderr = io.StringIO()
    monkeypatch.setattr(progress, "message_console", lambda: Console(file=stderr, force_terminal=True, width=100))
    cost(["tiny"], device="cpu")
    assert (len(measured), stderr.getvalue()) == (1, "")
