"""Audits on a dask cluster: models and theories travel by name and by value, and the evidence is the same as here."""

import os

import pytest
import torch

import attnaudit
from attnaudit.errors import InputError, UsageError
from attnaudit.theories import KernelPCA
from tests.records.engine.squares import parts

pytest.importorskip("distributed")
timm = pytest.importorskip("timm")

MODEL = "test_vit"
CHEAP = {"measures": ("value_subspace_overlap",), "references": ("random_projection", "best_projection", "planted")}


def run(folder, out, **more):
    return attnaudit.audit(MODEL, folder, random_weights=True, out=out, **CHEAP, **more)


class DiesOnce:
    """Kernel PCA on a worker that the first head kills; the marker tells the second attempt to live."""

    name, text = "dies-once", "a theory that kills the worker which first looks at it"

    def __init__(self, marker, home):
        self.marker, self.home = marker, home

    def predict(self, heads, spectrum, protocol):
        if os.getpid() != self.home and not self.marker.exists():
            self.marker.touch()
            os._exit(1)
        return KernelPCA().predict(heads, spectrum, protocol)


def test_a_cluster_gives_the_same_bytes_as_this_process(cluster, image_folder, tmp_path):
    here = run(image_folder, tmp_path / "here")
    there = run(image_folder, tmp_path / "there", cluster=cluster.scheduler_address)
    assert parts(there.path) == parts(here.path)
    assert there.summary == here.summary


def test_a_killed_worker_loses_and_doubles_nothing(mortal_cluster, image_folder, tmp_path):
    theory = DiesOnce(tmp_path / "marker", os.getpid())
    there = run(image_folder, tmp_path / "there", cluster=mortal_cluster.scheduler_address, theories=[theory])
    assert theory.marker.exists()
    here = run(image_folder, tmp_path / "here", theories=[theory])
    assert parts(there.path) == parts(here.path)


def test_an_image_that_workers_see_otherwise_is_named(cluster, image_folder, tmp_path):
    def change(done, total, label):
        for path in image_folder.rglob("*.png"):
            path.unlink()

    with pytest.raises(InputError, match=r"image\d.png cannot be read .*the same paths"):
        run(image_folder, tmp_path / "run", cluster=cluster.scheduler_address, progress=change)


def test_a_model_in_memory_cannot_travel(no_scheduler):
    with pytest.raises(UsageError, match="in memory cannot be sent"):
        attnaudit.audit(timm.create_model(MODEL), torch.zeros(1, 3, 160, 160), cluster=no_scheduler)
