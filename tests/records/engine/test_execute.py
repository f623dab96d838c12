"""The engine: the same parts however the work is divided, interrupted or repeated."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import forkserver
from queue import SimpleQueue

import pytest

import attnaudit
from attnaudit.errors import InputError, RunFolderError, UsageError, WorkerError
from attnaudit.records.engine import Resources, execute, processes, starting_processes, worker_pool
from attnaudit.records.run_folder import RunFolder
from tests.records.engine.squares import (
    SCHEMA,
    DieOnce,
    LogTo,
    SquarePlan,
    SquareRecipe,
    active,
    die,
    has_ended,
    parts,
    refuse_two,
    stick,
)

TWO = Resources(workers=2)


@pytest.fixture
def finished(tmp_path):
    return execute(SquarePlan(), tmp_path / "finished")


def test_parts_hold_rows_and_notes_in_the_order_of_the_plan(finished):
    keys = json.loads(finished.settings_file.read_text())["parts"]
    assert keys == [f"square-{number}" for number in (1, 2, 3, 4)]
    tables = finished.parts.tables(dict.fromkeys(keys, 1), SCHEMA)
    assert [table["square"].to_pylist() for table in tables.values()] == [[1], [4], [9], [16]]
    assert [note.skipped[0][0] for note in finished.parts.notes(keys)] == ["1", "2", "3", "4"]


def test_run_json_holds_identity_description_and_versions(finished):
    content = json.loads(finished.settings_file.read_text())
    assert content["identity"] == {"name": "squares"}
    assert content["numbers"] == [1, 2, 3, 4]
    assert content["attnaudit"] == attnaudit.__version__
    assert "pyarrow" in content["versions"]


def test_nothing_is_summarised(finished):
    assert not finished.summary_file.exists()


def test_worker_processes_give_the_same_bytes(finished, tmp_path):
    assert parts(execute(SquarePlan(), tmp_path / "run", TWO).path) == parts(finished.path)


def test_only_missing_parts_are_computed(finished, tmp_path):
    before = parts(finished.path)
    finished.parts.files()["square-3"].unlink()
    (tmp_path / "log").mkdir()
    execute(SquarePlan(before=LogTo(tmp_path / "log")), finished.path)
    assert [path.name.split()[0] for path in (tmp_path / "log").iterdir()] == ["3"]
    assert parts(finished.path) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda part, other: part.write_bytes(part.read_bytes()[:-1]),
        lambda part, other: part.write_bytes(other.read_bytes()),
        lambda part, other: (part.unlink(), part.symlink_to("nowhere")),
    ],
)
def test_a_damaged_part_is_named_and_computed_again(finished, tmp_path, caplog, damage):
    before = parts(finished.path)
    part = finished.parts.files()["square-3"]
    damage(part, finished.parts.files()["square-1"])
    (tmp_path / "log").mkdir()
    execute(SquarePlan(before=LogTo(tmp_path / "log")), finished.path)
    assert [path.name.split()[0] for path in (tmp_path / "log").iterdir()] == ["3"]
    assert parts(finished.path) == before
    assert str(part) in caplog.text


def test_a_damaged_part_that_cannot_be_removed_is_named(finished):
    part = finished.parts.files()["square-3"]
    part.unlink()
    part.mkdir()
    with pytest.raises(RunFolderError, match=f"{part.name} cannot be removed"):
        execute(SquarePlan(), finished.path)


def test_a_unit_that_is_planned_twice_is_computed_once(finished, tmp_path):
    told = []
    execute(SquarePlan((1, 2, 1, 3, 4, 4)), tmp_path / "run", progress=lambda *values: told.append(values))
    assert told[-1] == (4, 4, "done")
    assert parts(tmp_path / "run") == parts(finished.path)


@pytest.mark.parametrize("resources", [None, TWO])
def test_progress_counts_finished_units_and_names_the_next(tmp_path, resources):
    told = []
    execute(SquarePlan((1, 2)), tmp_path / "run")
    execute(SquarePlan(), tmp_path / "run", resources, lambda *values: told.append(values))
    assert told == [(2, 4, "3 squared"), (3, 4, "4 squared"), (4, 4, "done")]


def test_a_finished_run_builds_no_worker(finished, monkeypatch):
    monkeypatch.setattr(SquarePlan, "worker", lambda *_: pytest.fail("built a worker"))
    execute(SquarePlan(), finished.path)


def test_the_context_of_a_worker_ends_with_its_work(finished, tmp_path):
    assert not active
    with pytest.raises(InputError):
        execute(SquarePlan(before=refuse_two), tmp_path / "run")
    assert not active


@pytest.mark.parametrize("resources", [None, TWO])
def test_a_start_that_fails_leaves_nothing_behind(tmp_path, resources):
    with pytest.raises(InputError, match="2 cannot be squared"):
        execute(SquarePlan((2,), refuse_two), tmp_path / "new" / "run", resources)
    assert not (tmp_path / "new").exists()


def test_what_was_finished_before_a_failure_stays(finished, tmp_path):
    with pytest.raises(InputError):
        execute(SquarePlan(before=refuse_two), tmp_path / "run")
    assert list(RunFolder(tmp_path / "run").parts.files()) == ["square-1"]
    assert parts(execute(SquarePlan(), tmp_path / "run").path) == parts(finished.path)


def test_a_folder_that_was_there_before_is_not_discarded(tmp_path):
    execute(SquarePlan(()), tmp_path / "run")
    with pytest.raises(InputError):
        execute(SquarePlan((2,), refuse_two), tmp_path / "run")
    assert (tmp_path / "run" / "run.json").exists()


def test_a_folder_of_another_plan_is_refused_and_left_alone(finished):
    before = parts(finished.path)
    with pytest.raises(RunFolderError, match="squares there, cubes here"):
        execute(SquarePlan((5,), name="cubes"), finished.path)
    assert parts(finished.path) == before


def test_units_without_a_recipe_are_computed_here(tmp_path):
    (tmp_path / "log").mkdir()
    execute(SquarePlan(before=LogTo(tmp_path / "log"), recipes=(None,)), tmp_path / "run", TWO)
    assert {path.name.split()[-1] for path in (tmp_path / "log").iterdir()} == {str(os.getpid())}


def test_units_without_a_recipe_cannot_go_to_a_cluster(tmp_path):
    with pytest.raises(UsageError, match="in memory cannot be sent to a cluster"):
        execute(SquarePlan(recipes=(None,)), tmp_path / "run", Resources(cluster="tcp://127.0.0.1:1"))
    assert not (tmp_path / "run").exists()


def test_a_process_builds_one_worker_per_recipe_and_gets_its_share_of_the_memory(tmp_path):
    (tmp_path / "log").mkdir()
    plan = SquarePlan(tuple(range(8)), recipes=(SquareRecipe(log=tmp_path / "log"),))
    execute(plan, tmp_path / "run", replace(TWO, memory=4 * 10**9))
    built = [path.read_text().splitlines() for path in (tmp_path / "log").iterdir()]
    assert 1 <= len(built) <= 2
    assert all(lines == ["2000000000"] for lines in built)


def test_several_recipes_share_the_processes(finished, tmp_path):
    recipes = (SquareRecipe(name="even"), SquareRecipe(name="odd"))
    assert parts(execute(SquarePlan(recipes=recipes), tmp_path / "run", TWO).path) == parts(finished.path)


def test_a_worker_that_dies_is_explained_and_the_run_can_be_resumed(finished, tmp_path):
    with pytest.raises(WorkerError, match="repeat the command"):
        execute(SquarePlan(before=die, recipes=(SquareRecipe(die),)), tmp_path / "run", TWO)
    assert not (tmp_path / "run").exists()
    once = DieOnce(tmp_path / "marker", os.getpid())
    with pytest.raises(WorkerError, match="fewer --workers"):
        execute(SquarePlan(recipes=(SquareRecipe(once),)), tmp_path / "run", TWO)
    assert parts(execute(SquarePlan(), tmp_path / "run", TWO).path) == parts(finished.path)


def process(module):
    """Of a worker: the process that started it, and whether a module is imported."""
    return os.getppid(), module in sys.modules


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every worker starts from scratch")
def test_an_interruption_while_it_waits_ends_the_workers(tmp_path, monkeypatch, capfd):
    """Ctrl-C comes where the program waits for the next part, once both workers are in the middle of their work."""
    at_work = []

    class Interrupted(SimpleQueue):
        def get(self):
            while len(at_work) < 2:
                at_work.extend(capfd.readouterr().out.split())
            raise KeyboardInterrupt

    monkeypatch.setattr(processes, "SimpleQueue", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        execute(SquarePlan((1, 2), stick), tmp_path / "run", Resources(workers=2))
    assert all(map(has_ended, at_work))


def test_what_workers_need_is_imported_once_for_all_of_them():
    with worker_pool(2, ["this"]) as pool, starting_processes():
        workers = [pool.submit(process, "this").result() for _ in range(4)]
    assert {imported for _, imported in workers} == {True}
    (server,) = {parent for parent, _ in workers}
    assert server != os.getpid()
    assert has_ended(server), "it is not kept: the next workers may need another environment"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every worker starts from scratch")
def test_workers_see_the_environment_of_their_start(monkeypatch):
    for value in ("old", "new"):
        monkeypatch.setenv("ATTNAUDIT_TEST", value)
        with worker_pool(1) as pool, starting_processes():
            assert pool.submit(os.getenv, "ATTNAUDIT_TEST").result() == value


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every worker starts from scratch")
def test_a_process_that_the_program_forks_its_own_workers_from_is_left_alone():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as own:
        server, _ = own.submit(process, "this").result()
        with worker_pool(1, ["this"]) as pool, starting_processes():
            assert pool.submit(process, "this").result() == (os.getpid(), False)
        assert own.submit(process, "this").result() == (server, False)
    forkserver._forkserver._stop()


KILLED = """
    import multiprocessing, os, signal, sys
    from pathlib import Path
    from attnaudit.records.engine import Resources, execute, starting_processes, worker_pool
    from tests.records.engine.squares import SquarePlan

    def progress(done, total, label):
        if done == 1:
            print(*(child.pid for child in multiprocessing.active_children()), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    if __name__ == "__main__":
        execute(SquarePlan(), Path(sys.argv[1]), Resources(workers=int(sys.argv[2])), progress)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_run_ends_its_workers_and_finishes_as_an_undisturbed_one(finished, tmp_path, workers):
    script, out = tmp_path / "killed.py", tmp_path / "run"
    script.write_text(textwrap.dedent(KILLED))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path)}
    process = subprocess.run(
        [sys.executable, script, out, str(workers)], env=environment, check=False, capture_output=True, text=True
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    children = process.stdout.split()
    assert len(children) == (workers if workers > 1 else 0)
    assert all(map(has_ended, children))
    assert len(parts(out)) == 1
    assert parts(execute(SquarePlan(), out).path) == parts(finished.path)
