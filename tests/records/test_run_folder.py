"""Files are written whole or not at all, and what stands in the way is said in one sentence."""

import errno
import os
from pathlib import Path

import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records.files import write_whole
from attnaudit.records.run_folder import RunFolder


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


def test_a_full_disk_is_said_of_every_file_of_a_run(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run")
    folder.open({}, {})
    monkeypatch.setattr(os, "fsync", full)
    writers = (
        lambda: folder.open({}, {}),
        lambda: folder.write_part("a", b""),
        lambda: folder.write_summary({}),
        lambda: folder.extend_settings(more=1),
    )
    for write in writers:
        with pytest.raises(RunFolderError, match=r"cannot be written \(No space left on device\): make room"):
            write()
