"""Curves for TensorBoard, and a sentence where they cannot be written."""

import errno
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from attnaudit.errors import MissingExtraError, RunFolderError
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


def test_curves_that_cannot_be_written_are_a_sentence(monkeypatch, tmp_path):
    def full(*arguments, **named):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = SimpleNamespace(add_scalar=lambda tag, scalar_value, global_step: None, flush=full)
    with pytest.raises(RunFolderError, match=r"TensorBoard cannot be written \(No space left on device\): make room"):
        Monitor(network(), batch(), tensorboard=writer, scores=0, tell=quiet).measure(0)
    for module in ("tensorboard", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(SummaryWriter=full))
    with pytest.raises(RunFolderError, match="TensorBoard cannot be written"):
        Monitor(network(), batch(), tensorboard=tmp_path / "curves", scores=0, tell=quiet).measure(0)
