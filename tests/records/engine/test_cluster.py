"""Units on a dask cluster: the same parts as here, whatever happens to the workers."""

import os
import sys

import pytest

import attnaudit
from attnaudit.errors import InputError, MissingExtraError, UsageError, WorkerError
from attnaudit.records.engine import Resources, execute
from attnaudit.records.engine import cluster as cluster_module
from tests.clusters import local_cluster
from tests.records.engine.squares import DieOnce, SquarePlan, SquareRecipe, die, parts, refuse_two

distributed = pytest.importorskip("distributed")


def at(running):
    return Resources(cluster=getattr(running, "scheduler_address", running))


@pytest.fixture
def here(tmp_path):
    return parts(execute(SquarePlan(), tmp_path / "here").path)


def test_a_cluster_gives_the_same_bytes_as_this_process(cluster, here, tmp_path):
    assert parts(execute(SquarePlan(), tmp_path / "there", at(cluster)).path) == here


def test_a_finished_run_needs_no_cluster(here, tmp_path, no_scheduler):
    assert parts(execute(SquarePlan(), tmp_path / "here", at(no_scheduler)).path) == here


def test_a_killed_worker_loses_and_doubles_nothing(mortal_cluster, here, tmp_path):
    once = DieOnce(tmp_path / "marker", os.getpid())
    there = execute(SquarePlan(recipes=(SquareRecipe(once),)), tmp_path / "there", at(mortal_cluster))
    assert once.marker.exists()
    assert parts(there.path) == here


def test_a_unit_that_keeps_killing_workers_is_given_up_and_the_cluster_lives_on(mortal_cluster, tmp_path):
    with pytest.raises(WorkerError, match="killed several workers"):
        execute(SquarePlan((1,), recipes=(SquareRecipe(die),)), tmp_path / "there", at(mortal_cluster))
    assert not (tmp_path / "there").exists()
    assert len(parts(execute(SquarePlan((5,)), tmp_path / "next", at(mortal_cluster)).path)) == 1


def test_a_worker_with_other_versions_is_named_in_one_line(cluster, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(cluster_module, "__version__", "9.9")
    execute(SquarePlan((1,)), tmp_path / "run", at(cluster))
    lines = [record.getMessage() for record in caplog.records if record.name == cluster_module.__name__]
    assert len(lines) == 2  # one for each worker
    assert all(f"has attnaudit {attnaudit.__version__} (here 9.9): its numbers may differ" in line for line in lines)


class Answering:
    """A client whose workers give these answers."""

    def __init__(self, *answers):
        self.answers = answers

    def wait_for_workers(self, count, timeout):
        pass

    def run(self, function, on_error):
        assert on_error == "return"
        return dict(enumerate(self.answers))


def test_a_worker_without_attnaudit_is_named_and_one_that_just_died_is_not():
    dead = OSError("connection closed")
    cluster_module._check_workers(Answering(dead), "tcp://somewhere:1")
    lacking = ModuleNotFoundError("no module", name="attnaudit")
    with pytest.raises(WorkerError, match="somewhere:1 lacks attnaudit"):
        cluster_module._check_workers(Answering(dead, lacking), "tcp://somewhere:1")


def test_an_error_of_a_worker_says_where_it_was_raised(cluster, tmp_path):
    with pytest.raises(InputError, match=f"2 cannot be squared.*worker at {cluster.scheduler_address}.*the same paths"):
        execute(SquarePlan((2,), recipes=(SquareRecipe(refuse_two),)), tmp_path / "run", at(cluster))


def test_a_worker_of_several_threads_is_refused(tmp_path):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, dashboard_address=":0", host="127.0.0.1", silence_logs=50
        ) as threaded,
        pytest.raises(UsageError, match="must have 1 thread, got 2"),
    ):
        execute(SquarePlan(), tmp_path / "run", at(threaded))


def test_an_unreachable_scheduler_is_one_sentence(tmp_path, no_scheduler, monkeypatch, capfd):
    monkeypatch.setattr(cluster_module, "CONNECTING", 0.5)
    with pytest.raises(WorkerError, match=f"No dask scheduler answers at {no_scheduler}"):
        execute(SquarePlan(), tmp_path / "run", at(no_scheduler))
    assert capfd.readouterr().err == ""
    assert not (tmp_path / "run").exists()


def test_a_scheduler_without_workers_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module, "WITHOUT_WORKERS", 0.5)
    with local_cluster(workers=0) as empty, pytest.raises(WorkerError, match="has no workers: start some"):
        execute(SquarePlan(), tmp_path / "run", at(empty))


def test_a_scheduler_that_goes_away_leaves_what_was_finished(here, tmp_path):
    with local_cluster(workers=1) as leaving:

        def leave(done, total, label):
            if done == 1:
                leaving.close()

        with pytest.raises(WorkerError, match="is gone: what was finished is stored"):
            execute(SquarePlan(), tmp_path / "run", at(leaving), leave)
    assert len(parts(tmp_path / "run")) == 1
    assert parts(execute(SquarePlan(), tmp_path / "run").path) == here


def test_the_missing_extra_is_named(tmp_path, no_scheduler, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"attnaudit\[cluster\]"):
        execute(SquarePlan(), tmp_path / "run", at(no_scheduler))
