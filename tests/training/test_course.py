"""What a monitor has measured so far, read from its folder."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records import json_file
from attnaudit.records.lock import LockHolder
from attnaudit.training import Monitor, course, open_course, train
from tests.training.networks import batch, network
from tests.training.rows import quiet


def monitored(path, steps=(0, 2, 11)):
    monitor = Monitor(network(), {"train": batch(), "test": batch(seed=2)}, out=path, scores=1, tell=quiet)
    for step in steps:
        monitor.measure(step)
    return monitor


def test_a_running_monitor_can_be_read_up_to_its_last_step(tmp_path):
    monitor = monitored(tmp_path / "run")
    found = open_course(tmp_path / "run")
    assert [reading.step for reading in found.readings] == list(found.parts) == [0, 2, 11]
    assert found.batches == ("train", "test")
    assert found.writer.pid == os.getpid()
    assert found.readings[-1].line == monitor.latest.line
    assert found.evidence.equals(monitor.evidence)
    assert found.layers().equals(monitor.layers())
    monitor.detach()
    assert open_course(tmp_path / "run").writer is None


def test_a_killed_writer_does_not_count_as_running(tmp_path):
    monitored(tmp_path / "run").detach()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    json_file.write(tmp_path / "run" / ".lock.json", replace(LockHolder.this_process(), pid=ended.pid))
    assert open_course(tmp_path / "run").writer is None


def test_the_monitor_of_a_training_is_read_with_its_history(case, tmp_path):
    train(case.recipe("epochs=2"), case.data, tmp_path / "run")
    found = open_course(tmp_path / "run")
    assert len(found.history) == 2
    assert found.last_step == found.total == max(found.parts)
    assert len(found.readings) == 3, "before the training and after every epoch"


def test_very_many_steps_are_read_at_even_distances_with_both_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(course, "MOST_STEPS", 3)
    monitored(tmp_path / "run", steps=(0, 1, 2, 3, 4))
    assert [reading.step for reading in open_course(tmp_path / "run").readings] == [0, 2, 4]


def test_a_step_is_read_again_only_if_it_was_measured_again(tmp_path, monkeypatch):
    monitor = monitored(tmp_path / "run")
    known = {}
    open_course(tmp_path / "run", known=known)
    read = []
    monkeypatch.setattr(course, "read", lambda step, *rest: read.append(step) or step)
    open_course(tmp_path / "run", known=known)
    assert read == []
    monitor._probe.model.blocks[0].qkv.weight.data.mul_(2)
    monitor.measure(2)
    open_course(tmp_path / "run", known=known)
    assert read == [2]


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(RunFolderError, match="There is no folder"):
        open_course(tmp_path / "none")
    with pytest.raises(RunFolderError, match="is not a run folder"):
        open_course(tmp_path)
