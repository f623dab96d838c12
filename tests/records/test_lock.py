"""One process writes into a run folder, another one is told who; a lock whose holder was killed is free."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records.engine import execute
from attnaudit.records.run_folder import RunFolder
from tests.records.engine.squares import SquarePlan, parts

HOLDER = """
    import sys
    from pathlib import Path
    from attnaudit.records.engine import execute
    from tests.records.engine.squares import SquarePlan

    def progress(done, total, label):
        if done == 1:
            print("ready", flush=True)
            sys.stdin.read()

    execute(SquarePlan(), Path(sys.argv[1]), progress=progress)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that is in the middle of a run."""
    script = tmp_path / "holder.py"
    script.write_text(textwrap.dedent(HOLDER))
    process = subprocess.Popen(
        [sys.executable, script, tmp_path / "run"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def test_of_two_runs_in_one_folder_one_works_and_the_other_says_who(holder, tmp_path):
    out = tmp_path / "run"
    (out / "evidence" / ".part-x.abc.tmp").write_bytes(b"of the living")
    before = parts(out)
    with pytest.raises(RunFolderError, match=rf"written by process {holder.pid} on .* since "):
        execute(SquarePlan(), out)
    assert parts(out) == before, "its files are left alone"
    holder.communicate("")
    assert holder.returncode == 0
    assert len(RunFolder(out).parts.files()) == 4


def test_the_lock_of_a_killed_run_is_free_and_its_leftovers_go(holder, tmp_path):
    out = tmp_path / "run"
    (out / "evidence" / ".part-x.abc.tmp").write_bytes(b"of the dead")
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    execute(SquarePlan(), out)
    assert parts(out) == parts(execute(SquarePlan(), tmp_path / "other").path)


def test_a_second_run_in_the_same_process_is_refused_too(tmp_path):
    first = RunFolder(tmp_path / "run")
    with first.locked():
        with first.locked():
            pass
        with pytest.raises(RunFolderError, match=f"written by process {os.getpid()}"):
            RunFolder(tmp_path / "run").lock()
    with RunFolder(tmp_path / "run").locked():
        pass


def test_a_lock_leaves_no_empty_folder_and_nothing_in_that_of_others(tmp_path):
    with RunFolder(tmp_path / "new" / "run").locked():
        assert (tmp_path / "new" / "run").is_dir()
    assert not (tmp_path / "new").exists()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="neither empty nor a run folder"):
        RunFolder(tmp_path).lock()
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_whose_run_was_killed_before_its_first_file_can_be_used(tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    for name in (".lock", ".lock.json", ".run.json.abc.tmp"):
        (out / name).write_text("")
    execute(SquarePlan(), out)
    assert sorted(file.name for file in out.iterdir()) == [".lock", "evidence", "run.json"]
