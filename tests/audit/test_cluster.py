"""Units on a dask cluster: the same evidence as here, whatever happens to the workers."""

import os
import socket
import sys

import pytest
import torch

import attnaudit
from attnaudit.audit import cluster as cluster_module
from attnaudit.errors import InputError, MissingExtraError, UsageError, WorkerError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
timm = pytest.importorskip("timm")

MODEL = "test_vit"
CHEAP = {"families": ("columns", "identifiability"), "references": ("gaussian", "other_head", "planted")}


def run(folder, out, **more):
    return attnaudit.audit(MODEL, folder, random_weights=True, out=out, **CHEAP, **more)


def files(result):
    return {path.name: path.read_bytes() for path in sorted((result.path / "evidence").iterdir())}


def workers():
    """Two worker processes of one thread each, on this machine."""
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1", silence_logs=50
    )


@pytest.fixture(scope="module")
def cluster():
    """One that nothing happens to."""
    with workers() as running:
        yield running


@pytest.fixture
def mortal_cluster():
    """One of its own for a test that kills workers, since not every one comes back; a unit may kill one, not two."""
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), workers() as running:
        yield running


@pytest.fixture
def no_scheduler():
    """An address of this machine where nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{free.getsockname()[1]}"


def test_a_cluster_gives_the_same_bytes_as_this_process(cluster, image_folder, tmp_path):
    here = run(image_folder, tmp_path / "here")
    there = run(image_folder, tmp_path / "there", cluster=cluster.scheduler_address)
    assert files(there) == files(here)
    assert there.summary == here.summary


def test_a_finished_run_needs_no_cluster(image_folder, tmp_path, no_scheduler):
    finished = run(image_folder, tmp_path / "run")
    assert run(image_folder, tmp_path / "run", cluster=no_scheduler).summary == finished.summary


class DiesOnce:
    """Kernel PCA on a worker that the first head kills; the marker tells the second attempt to live."""

    name, text = "dies-once", "a theory that kills the worker which first looks at it"

    def __init__(self, marker, home):
        self.marker, self.home = marker, home

    def predict(self, heads, spectrum, protocol):
        if os.getpid() != self.home and not self.marker.exists():
            self.marker.touch()
            os._exit(1)
        return attnaudit.theories.registry.KernelPCA().predict(heads, spectrum, protocol)


class DiesAlways(DiesOnce):
    """The same, at every attempt."""

    def predict(self, heads, spectrum, protocol):
        os._exit(1)


def test_a_killed_worker_loses_and_doubles_nothing(mortal_cluster, image_folder, tmp_path):
    theory = DiesOnce(tmp_path / "marker", os.getpid())
    there = run(image_folder, tmp_path / "there", cluster=mortal_cluster.scheduler_address, theories=[theory])
    assert theory.marker.exists()
    here = run(image_folder, tmp_path / "here", theories=[theory])
    assert files(there) == files(here)


def test_a_unit_that_keeps_killing_workers_is_given_up_and_the_cluster_lives_on(mortal_cluster, image_folder, tmp_path):
    theory = DiesAlways(tmp_path / "marker", os.getpid())
    with pytest.raises(WorkerError, match="killed several workers"):
        run(image_folder, tmp_path / "there", cluster=mortal_cluster.scheduler_address, theories=[theory])
    assert not (tmp_path / "there").exists()
    assert run(image_folder, tmp_path / "next", cluster=mortal_cluster.scheduler_address, limit=1).verdicts


def test_a_worker_with_other_versions_is_named_in_one_line(cluster, image_folder, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(cluster_module, "__version__", "9.9")
    run(image_folder, tmp_path / "run", cluster=cluster.scheduler_address, limit=1)
    lines = [record.getMessage() for record in caplog.records if record.name == cluster_module.__name__]
    assert len(lines) == 2  # one for each worker
    assert all(f"has attnaudit {attnaudit.__version__} (here 9.9): its numbers may differ" in line for line in lines)


def test_a_image_that_workers_see_otherwise_is_named(cluster, image_folder, tmp_path):
    def change(done, total):
        for path in image_folder.rglob("*.png"):
            path.unlink()

    with pytest.raises(InputError, match=r"image\d.png cannot be read .*the same paths"):
        run(image_folder, tmp_path / "run", cluster=cluster.scheduler_address, progress=change)


def test_an_unreachable_scheduler_is_one_sentence(image_folder, tmp_path, no_scheduler, monkeypatch, capfd):
    monkeypatch.setattr(cluster_module, "CONNECTING", 0.5)
    with pytest.raises(WorkerError, match=f"No dask scheduler answers at {no_scheduler}"):
        run(image_folder, tmp_path / "run", cluster=no_scheduler)
    assert capfd.readouterr().err == ""
    assert not (tmp_path / "run").exists()


def test_a_scheduler_without_workers_is_one_sentence(image_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module, "WITHOUT_WORKERS", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", host="127.0.0.1", silence_logs=50) as empty,
        pytest.raises(WorkerError, match="has no workers: start some"),
    ):
        run(image_folder, tmp_path / "run", cluster=empty.scheduler_address)


def test_a_scheduler_that_goes_away_leaves_what_was_finished(image_folder, tmp_path):
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1", silence_logs=50
    ) as leaving:

        def leave(done, total):
            if done == 1:
                leaving.close()

        with pytest.raises(WorkerError, match="is gone: what was finished is stored"):
            run(image_folder, tmp_path / "run", cluster=leaving.scheduler_address, progress=leave)
    assert len(list((tmp_path / "run" / "evidence").iterdir())) == 1
    assert run(image_folder, tmp_path / "run").verdicts


def test_what_is_no_address_is_refused(image_folder, tmp_path):
    with pytest.raises(UsageError, match="'somewhere' is no address"):
        run(image_folder, tmp_path / "run", cluster="somewhere")


def test_a_model_in_memory_cannot_travel(no_scheduler):
    with pytest.raises(UsageError, match="in memory cannot travel"):
        attnaudit.audit(timm.create_model(MODEL), torch.zeros(1, 3, 160, 160), cluster=no_scheduler)


def test_workers_and_cluster_exclude_each_other(image_folder, tmp_path, no_scheduler):
    with pytest.raises(UsageError, match="exclude each other"):
        run(image_folder, tmp_path / "run", cluster=no_scheduler, workers=2)


def test_the_missing_extra_is_named(image_folder, tmp_path, no_scheduler, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"attnaudit\[cluster\]"):
        run(image_folder, tmp_path / "run", cluster=no_scheduler)
