"""The readings of a monitor as curves in TensorBoard and Weights & Biases."""

import errno
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from attnaudit.errors import MissingExtraError, RunFolderError, UsageError
from attnaudit.training import Monitor
from tests.training.networks import HEADS, batch, network
from tests.training.rows import quiet, value


def test_curves_go_to_tensorboard_on_request(monkeypatch, tmp_path):
    points = {}

    class Writer:
        def add_scalar(self, tag, scalar_value, global_step):
            points[tag, global_step] = scalar_value

        def flush(self):
            points["flushed", None] = len(points)

    table = Monitor(network(), {"train": batch()}, tensorboard=Writer(), tell=quiet).measure(3)
    by_head = [value(table, "projection_error_mae", batch="train", layer=1, head=head) for head in range(HEADS)]
    assert points["train/projection_error_mae/layer 1", 3] == pytest.approx(np.mean(by_head))
    assert points["flushed", None] == len(points) - 1
    assert {"train/projection_error_mae", "train/explained", "train/score/procrustes"} <= {tag for tag, _ in points}
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"needs tensorboard.*attnaudit\[tensorboard\]"):
        Monitor(network(), batch(), tensorboard=tmp_path / "curves", tell=quiet).measure(0)


def test_curves_that_cannot_be_written_are_an_error_with_its_reason(monkeypatch, tmp_path):
    def full(*arguments, **named):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = SimpleNamespace(add_scalar=lambda tag, scalar_value, global_step: None, flush=full)
    with pytest.raises(RunFolderError, match=r"TensorBoard .*\(No space left on device\)"):
        Monitor(network(), batch(), tensorboard=writer, scores=0, tell=quiet).measure(0)
    for module in ("tensorboard", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(SummaryWriter=full))
    with pytest.raises(RunFolderError, match="TensorBoard"):
        Monitor(network(), batch(), tensorboard=tmp_path / "curves", scores=0, tell=quiet).measure(0)


class FakeRun:
    """What `wandb.init` returns, as far as it is used."""

    def __init__(self, **settings):
        self.settings, self.metrics, self.logged, self.finished = settings, {}, [], False

    def define_metric(self, name, *, step_metric=None):
        self.metrics[name] = step_metric

    def log(self, data):
        assert not self.finished
        self.logged.append(data)

    def finish(self):
        self.finished = True


def test_curves_go_to_a_run_of_wandb_over_a_step_of_their_own():
    run = FakeRun()
    monitor = Monitor(network(), {"train": batch()}, wandb=run, tell=quiet)
    table = monitor.measure(3)
    monitor.measure(6)
    assert run.metrics == {"attnaudit/step": None, "attnaudit/*": "attnaudit/step"}
    assert [data["attnaudit/step"] for data in run.logged] == [3, 6]
    by_head = [value(table, "output_norm2", batch="train", layer=0, head=head) for head in range(HEADS)]
    assert run.logged[0]["attnaudit/train/output_norm2/layer 0"] == pytest.approx(np.mean(by_head))
    assert "attnaudit/train/score/procrustes" in run.logged[0]
    monitor.detach()
    assert not run.finished  # it is the caller's


@pytest.fixture
def runs(monkeypatch):
    """The runs that `wandb.init` started."""
    started = []

    def init(**settings):
        started.append(FakeRun(**settings))
        return started[-1]

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    return started


def test_the_name_of_a_project_starts_a_run_of_wandb_when_the_first_step_is_measured(runs):
    monitor = Monitor(network(), batch(), wandb="heads", scores=0, tell=quiet)
    assert not runs
    monitor.measure(0)
    monitor.measure(1)
    (run,) = runs
    assert run.settings == {"project": "heads", "reinit": "create_new"}
    assert len(run.logged) == 2


def test_a_run_that_the_monitor_started_ends_with_it_and_a_later_step_starts_another(runs):
    with Monitor(network(), batch(), wandb="heads", scores=0, tell=quiet) as monitor:
        monitor.measure(0)
        assert not runs[0].finished
    assert runs[0].finished
    monitor.measure(1)
    assert [len(run.logged) for run in runs] == [1, 1]
    assert not runs[1].finished


def test_a_run_of_wandb_that_cannot_be_started_is_an_error_with_its_reason(monkeypatch):
    def init(**settings):
        raise RuntimeError("no API key")

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    with pytest.raises(UsageError, match=r"cannot start a run \(no API key\): log in"):
        Monitor(network(), batch(), wandb="heads", scores=0, tell=quiet).measure(0)
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtraError, match=r"needs wandb.*attnaudit\[wandb\]"):
        Monitor(network(), batch(), wandb="heads", scores=0, tell=quiet).measure(0)
