"""Ctrl-C and SIGTERM end a command and its workers, even in the middle of a computation without a step of Python."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from attnaudit.cli.stopping import Stopping
from tests.records.engine.squares import has_ended

WORDS = "attnaudit: stopping; repeat the command to resume.\n"
COMMAND = """
    import signal
    import sys
    from pathlib import Path
    from attnaudit.cli import app, main
    from attnaudit.records.engine import Resources, execute
    from tests.records.engine.squares import SquarePlan, stick

    @app.command()
    def squares(out: Path, workers: int):
        execute(SquarePlan((1, 2), stick), out, Resources(workers=workers))

    if __name__ == "__main__":
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
        if sys.argv.pop(1) == "command":
            main()
        else:
            squares(Path(sys.argv[2]), int(sys.argv[3]))
"""


def stopped(tmp_path, workers, number, *, how="command", group=False):
    """Stop a command while it computes; its exit code, what it said, and the processes that computed."""
    script = tmp_path / "command.py"
    script.write_text(textwrap.dedent(COMMAND))
    process = subprocess.Popen(
        [sys.executable, script, how, "squares", tmp_path / "run", str(workers)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    at_work = {process.stdout.readline().strip() for _ in range(workers)}
    (os.killpg if group else os.kill)(process.pid, number)
    try:
        _, said = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # they would compute for an hour
        raise
    return process.returncode, said, at_work


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_in_the_middle_of_a_computation_ends(tmp_path, number, code):
    assert stopped(tmp_path, 1, number)[:2] == (code, WORDS)


def test_a_command_that_keeps_nothing_promises_nothing(capfd):
    for resumes, words in ((True, "repeat the command to resume"), (False, "begins anew when repeated")):
        Stopping(resumes).announce()
        assert words in capfd.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_workers_in_the_middle_of_a_computation_end_with_their_command(tmp_path, number, code):
    """A terminal sends Ctrl-C to all processes of a command."""
    found, said, workers = stopped(tmp_path, 2, number, group=number == signal.SIGINT)
    assert (found, said) == (code, WORDS)
    assert len(workers) == 2
    assert all(map(has_ended, workers))


def test_workers_of_a_program_end_when_it_is_interrupted(tmp_path):
    _, said, workers = stopped(tmp_path, 2, signal.SIGINT, how="program", group=True)
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert said.count("Traceback") == 1, "the workers say nothing"
    assert all(map(has_ended, workers))
