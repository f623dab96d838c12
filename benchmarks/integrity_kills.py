"""Commands that are killed, at random and at aimed moments, and repeated: they must end like undisturbed ones.

Every command is killed by SIGKILL, SIGTERM or SIGINT once or several times, then repeated to its end, and compared with
a run that nothing happened to: evidence, settings, summary and weights byte by byte, but for what depends on the clock.
Aimed moments are just after a file of the run appears. Commands are forked from a process that has imported everything,
which saves most of their time. Results are appended to `kills.jsonl` in `--place`, and a
benchmark that is started again goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.integrity_runs import SmallRun, content, environment, prepare

from attnaudit.records.run_kind import RunKind

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
#: A kill is aimed at the moment a file appears that has one of these patterns.
AIMED = (".lock", "run.json", ".*.tmp", "evidence/*.parquet", "evidence/.*.tmp", "summary.json")
AIMED_AT_TRAININGS = (*AIMED, "checkpoint.pt", "model.safetensors", "card.json")
#: Files that must be equal to the last bit.
EXACT = {
    RunKind.AUDIT: ("run.json", "summary.json", "evidence/*.parquet"),
    RunKind.TRAINING: ("run.json", "model.safetensors", "average.safetensors", "evidence/*.parquet"),
    RunKind.ROBUSTNESS: ("run.json",),
}
LIMIT = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--place", type=Path, default=Path("runs/integrity"))
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", nargs="*", default=("serial", "workers", "train", "robust", "dask"))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve()
    runs, log = prepare(arguments.place), arguments.place / "kills.jsonl"
    done = log.read_text().splitlines() if log.exists() else []
    with _cluster() as address, _server() as server:
        serial = runs["serial"]
        runs["dask"] = SmallRun("dask", serial.kind, (*serial.arguments[:-2], "--cluster", address))
        audit = _whole(server, serial, arguments.place)  # the same, wherever its parts are computed
        wholes = {
            name: audit if run.kind is RunKind.AUDIT else _whole(server, run, arguments.place)
            for name, run in runs.items()
        }
        for number in range(len(done), arguments.kills):
            generator = random.Random(f"{arguments.seed} {number}")
            name = arguments.runs[number % len(arguments.runs)]
            found = _kill_and_finish(server, runs[name], arguments.place / "killed", wholes[name], generator)
            with log.open("a") as file:
                file.write(json.dumps({"number": number, "run": name, **found}) + "\n")
            print(number, name, found, flush=True)
    report([json.loads(line) for line in log.read_text().splitlines()])
    return None


def report(found: list[dict[str, Any]]) -> None:
    print(
        "run       kills   mid-run  equal ends  tracebacks  left alive  slowest answer  slowest end of SIGINT/SIGTERM"
    )
    for name in [*dict.fromkeys(own["run"] for own in found), None]:
        mine = [own for own in found if name in (None, own["run"])]
        kills = [kill for own in mine for kill in own["kills"]]
        soft = [kill for kill in kills if kill["signal"] != "SIGKILL" and kill["living"]]
        answers = [kill["answer"] for kill in soft if kill["answer"] is not None]
        print(
            f"{name or 'all':9} {len(kills):5} {sum(kill['living'] for kill in kills):9} "
            f"{sum(own['equal'] for own in mine):4} of {len(mine):2} {sum(kill['traceback'] for kill in kills):10} "
            f"{sum(kill['alive'] for kill in kills):11} {max(answers, default=0):6.2f} s "
            f"{max((kill['seconds'] for kill in soft), default=0):8.2f} s"
        )


def serve() -> None:
    """Fork a process for every command on stdin; print its number, and when it has ended its exit code."""
    import distributed  # noqa: F401
    import timm  # noqa: F401

    import attnaudit.api.audits
    import attnaudit.api.robustness
    import attnaudit.api.trainings
    import attnaudit.report.references  # noqa: F401
    from attnaudit.cli import main as command

    for line in sys.stdin:
        arguments, stderr = json.loads(line)
        if process := os.fork():
            print(process, flush=True)
            print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
            continue
        os.setsid()
        for number, file in ((0, os.devnull), (1, os.devnull), (2, stderr)):
            os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), number)
        sys.argv = ["attnaudit", *arguments]
        try:
            command()
        except SystemExit as ended:
            os._exit(int(ended.code or 0))
        finally:
            traceback.print_exc()
            os._exit(99)


class Server:
    """The process that commands are forked from."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._code: int | None = None

    def start(self, run: SmallRun, out: Path, stderr: Path) -> int:
        """Start a command; says the number of its process."""
        stderr.write_text("")
        self._code = None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([[*run.arguments, "--out", str(out)], str(stderr)]) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def poll(self) -> int | None:
        """The exit code of the last command; None while it runs."""
        if self._code is None and select.select([self._process.stdout], [], [], 0)[0]:
            self._code = int(self._line())
        return self._code

    def finish(self, run: SmallRun, out: Path) -> None:
        """Run a command to its end."""
        stderr = out.with_suffix(".stderr")
        self.start(run, out, stderr)
        if code := int(self._line()):
            raise SystemExit(f"{run.name} ended with {code}:\n{stderr.read_text()}")

    def _line(self) -> str:
        """Unbuffered, so that select sees what is there."""
        assert self._process.stdout is not None
        found = b""
        while not found.endswith(b"\n"):
            found += os.read(self._process.stdout.fileno(), 1) or _gone()
        return found.decode()


def _gone() -> bytes:
    raise SystemExit("The server is gone.")


@contextmanager
def _server() -> Iterator[Server]:
    command = [sys.executable, "-m", "benchmarks.integrity_kills", "--serve"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        yield Server(process)
        process.kill()


def _whole(server: Server, run: SmallRun, place: Path) -> Path:
    out = place / f"whole-{run.name}"
    if not (out / "summary.json").exists():
        server.finish(run, out)
    return out


def _kill_and_finish(server: Server, run: SmallRun, out: Path, whole: Path, generator: random.Random) -> dict[str, Any]:
    shutil.rmtree(out, ignore_errors=True)
    kills = [_kill(server, run, out, generator) for _ in range(generator.choice((1, 1, 2)))]
    server.finish(run, out)
    equal = content(run.kind, out) == content(run.kind, whole) and _files(run, out) == _files(run, whole)
    leftovers = [str(file) for file in out.rglob(".*.tmp")]
    return {"kills": kills, "equal": equal and not leftovers}


def _files(run: SmallRun, out: Path) -> dict[str, bytes]:
    files = [file for pattern in EXACT[run.kind] for file in sorted(out.glob(pattern))]
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def _kill(server: Server, run: SmallRun, out: Path, generator: random.Random) -> dict[str, Any]:
    number, aimed = generator.choice(SIGNALS), generator.random() < 0.5
    targets = AIMED_AT_TRAININGS if run.kind is RunKind.TRAINING else AIMED
    target, delay = generator.choice(targets), generator.uniform(0.1, 8.0)
    said, there = out.with_suffix(".stderr"), {*out.glob(target)}
    process, begin = server.start(run, out, said), time.monotonic()
    while server.poll() is None:
        if ({*out.glob(target)} - there) if aimed else time.monotonic() - begin >= delay:
            break
        time.sleep(0.001)
    children, living, answer = _descendants(process), server.poll() is None, None
    begin = time.monotonic()
    if living and number == signal.SIGINT:  # as a terminal does
        os.killpg(process, number)
    elif living:
        os.kill(process, number)
    while server.poll() is None:
        if answer is None and "stopping" in said.read_text():
            answer = time.monotonic() - begin
        time.sleep(0.005)
    seconds, words = time.monotonic() - begin, said.read_text()
    if answer is None and "stopping" in words:
        answer = seconds
    return {
        "signal": number.name,
        "moment": target if aimed else f"{delay:.1f} s",
        "living": living,
        "code": server.poll(),
        "answer": answer,
        "seconds": seconds,
        "traceback": "Traceback" in words,
        "alive": sum(not _ends(child) for child in children),
    }


def _descendants(process: int) -> list[int]:
    found = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(word) for word in file.read_text().split()]
        except OSError:
            continue
        found += [*children, *(own for child in children for own in _descendants(child))]
    return found


def _ends(process: int) -> bool:
    """Whether a worker ends soon after its parent, which it notices by itself after SIGKILL."""
    begin = time.monotonic()
    while time.monotonic() - begin < 10 * LIMIT:
        try:
            state = re.sub(r".*\) ", "", Path(f"/proc/{process}/stat").read_text())[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


@contextmanager
def _cluster() -> Iterator[str]:
    import distributed

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1", silence_logs=50
    ) as running:
        yield running.scheduler_address


if __name__ == "__main__":
    main()
