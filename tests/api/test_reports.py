"""Which page is written for which folders."""

from pathlib import Path

import pytest

import attnaudit
from attnaudit.api import reports
from attnaudit.errors import RunFolderError, UsageError
from attnaudit.training import Monitor
from tests.claims.evaluations import GAIN, pairs, write_evaluation
from tests.report.synthetic import write_run
from tests.training.networks import batch, network
from tests.training.rows import quiet


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def monitored(path, steps=(0,)):
    monitor = Monitor(network(), batch(), out=path, scores=0, tell=quiet)
    for step in steps:
        monitor.measure(step)
    return monitor


def test_the_folder_of_a_monitor_has_a_page_and_a_figure():
    monitored("run").detach()
    assert attnaudit.report("run", progress=False) == Path("run/report.html")
    assert {"report.html", "course.svg"} <= {file.name for file in Path("run").iterdir()}


def test_of_several_folders_what_is_no_audit_is_left_out_and_said(caplog):
    write_run(Path("audit"))
    monitored("monitor").detach()
    Path("gaussian-align").mkdir()
    Path("notes.txt").write_text("")
    unfinished = write_run(Path("unfinished"))
    (unfinished / "summary.json").unlink()
    page = attnaudit.report(["audit", "monitor", "gaussian-align", "notes.txt", "unfinished"], progress=False)
    assert page == Path("audit/report.html")
    said = " ".join(record.getMessage() for record in caplog.records)
    for name in ("monitor holds the measurements", "gaussian-align is not a run folder", "notes.txt", "not finished"):
        assert name in said


def test_an_evaluation_is_shown_by_its_own_page_or_judged(tmp_path):
    path = write_evaluation(tmp_path / "run", pairs(GAIN, GAIN))
    with pytest.raises(RunFolderError, match="repeat its command, or read it by attnaudit judge"):
        attnaudit.report(path)
    (path / "report.html").touch()
    with pytest.raises(RunFolderError, match=r"has a page of its own: open .*report\.html"):
        attnaudit.report(path)


def test_several_monitors_share_a_page():
    for name in ("a", "b"):
        monitored(name).detach()
    assert attnaudit.report(["a", "b"], progress=False).read_text().count("<article>") == 2


def test_folders_without_anything_to_show_are_an_error():
    for name in ("a", "b"):
        Path(name).mkdir()
    with pytest.raises(RunFolderError, match="None of the 2 folders can be shown; the first: a is not"):
        attnaudit.report(["a", "b"])


def test_too_many_models_are_refused_before_any_rows_are_read(monkeypatch):
    for name in ("a", "b"):
        write_run(Path(name))
    monkeypatch.setattr(reports, "MOST_MODELS", 1)
    monkeypatch.setattr(reports, "open_audit", pytest.fail)
    with pytest.raises(UsageError, match="2 runs have 2 models, and a page has room for 1"):
        attnaudit.report(["a", "b"])


def test_a_watched_monitor_is_drawn_anew_until_it_ends(monkeypatch):
    monitor = monitored("run")
    seen, actions = [], [lambda: monitor.measure(5), lambda: None, monitor.detach]

    def pause(seconds):
        seen.append("Up to step 5" in Path("run/report.html").read_text())
        actions.pop(0)()

    monkeypatch.setattr(reports.time, "sleep", pause)
    attnaudit.report("run", watch=True, progress=False)
    assert seen == [False, True, True]
    assert actions == []
    assert "refresh" not in Path("run/report.html").read_text()


def test_an_audit_cannot_be_watched():
    write_run(Path("run"))
    with pytest.raises(UsageError, match="--watch"):
        attnaudit.report("run", watch=True)
