"""Files are written whole or not at all, and what stands in the way is said in one sentence."""

import errno
import json
import os
from pathlib import Path

import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records.audit import open_audit
from attnaudit.records.evaluated_networks import open_evaluation
from attnaudit.records.files import check_writable, write_whole
from attnaudit.records.run_folder import FORMAT, RunFolder
from attnaudit.records.training import open_training
from tests.sealed import content_of, seal


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(("owner", "step"), [(os, "open"), (os, "fsync"), (Path, "replace")])
def test_a_full_disk_is_one_sentence_and_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, owner, step):
    path = tmp_path / "summary.json"
    write_whole(path, b"before")
    with monkeypatch.context() as patched:
        patched.setattr(owner, step, full)
        with pytest.raises(RunFolderError) as caught:
            write_whole(path, b"after")
    assert str(caught.value) == (
        f"{path} cannot be written (No space left on device): make room or give --out another place, and repeat the "
        "command."
    )
    assert [file.name for file in tmp_path.iterdir()] == ["summary.json"]
    assert path.read_bytes() == b"before"


def test_a_folder_is_made_and_written_into_before_anything_takes_time(tmp_path, monkeypatch):
    check_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    monkeypatch.setattr(os, "open", full)
    with pytest.raises(RunFolderError, match=r"a cannot be written \(No space left on device\): give --out another"):
        check_writable(tmp_path / "a")


def test_a_full_disk_is_said_of_every_file_of_a_run(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    folder.open({}, {})
    monkeypatch.setattr(os, "fsync", full)
    writers = (
        lambda: folder.open({}, {}),
        lambda: folder.parts.write("a", b""),
        lambda: folder.write_summary({}),
        lambda: folder.extend_settings(more=1),
    )
    for write in writers:
        with pytest.raises(RunFolderError, match=r"cannot be written \(No space left on device\): make room"):
            write()


#: What identities looked like before run folders had a format.
OLD = {
    "audit": {"settings": {"protocol": "exact", "seed": 0}, "models": [["x", "y"]], "inputs": [["a", "b"]]},
    "training": {"recipe": {"name": "x"}, "seed": 0, "data": ["a", "b"]},
    "robustness": {"kind": "robustness", "settings": {"seed": 0}, "data": "x"},
}


@pytest.mark.parametrize("open_folder", [open_audit, open_training, open_evaluation, lambda path: RunFolder(path).kind])
@pytest.mark.parametrize("kind", OLD)
def test_a_folder_of_an_older_format_is_refused_by_the_version_that_wrote_it(tmp_path, kind, open_folder):
    run = {"identity": OLD[kind], "attnaudit": "0.1.0.dev0", "versions": {}, "parts": []}
    (tmp_path / "run.json").write_text(json.dumps(run))
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(RunFolderError, match=r"was written by attnaudit 0\.1\.0\.dev0 in format 1") as caught:
        open_folder(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("other", [1, 2, FORMAT + 1])
def test_a_folder_of_another_format_is_not_written_into(tmp_path, other):
    folder = RunFolder(tmp_path / "run")
    folder.open({"kind": "audit"}, {"attnaudit": "9.9"})
    seal(folder.settings_file, content_of(folder.settings_file) | {"format": other})
    text = folder.settings_file.read_text()
    with pytest.raises(RunFolderError, match=rf"attnaudit 9\.9 in format {other}"):
        folder.open({"kind": "audit"}, {"attnaudit": "9.9"})
    assert folder.settings_file.read_text() == text


def test_a_resumed_run_has_the_same_settings_file_to_the_last_byte(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.open({"kind": "audit"}, {"attnaudit": "1", "versions": {}, "parts": []})
    written = folder.settings_file.read_bytes()
    folder.open({"kind": "audit"}, {"attnaudit": "1", "versions": {}, "parts": []})
    assert folder.settings_file.read_bytes() == written


def test_a_summary_goes_with_the_plan_that_it_is_of_and_before_the_new_one_is_written(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    folder.open({"kind": "audit"}, {"parts": ["a"]})
    folder.write_summary({})
    for description in ({"parts": ["a"]}, {"steps_per_epoch": 3}):
        folder.open({"kind": "audit"}, description)
        assert folder.summary_file.exists()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunFolderError, match="No space left"):
        folder.open({"kind": "audit"}, {"parts": ["a", "b"]})
    assert not folder.summary_file.exists()
    assert content_of(folder.settings_file)["parts"] == ["a"]
