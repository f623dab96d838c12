"""Commands that are killed, at random and at aimed moments, and repeated: they must end like undisturbed ones.

Every command is killed by SIGKILL, SIGTERM or SIGINT once or several times, then repeated to its end, and compared with
a run that nothing happened to: evidence, settings, summary and weights byte by byte, but for what depends on the clock.
Aimed moments are just after a file of the run appears. Results are appended to `kills.jsonl` in `--place`, and a
benchmark that is started again goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.integrity_runs import SmallRun, content, environment, finish, prepare

from attnaudit.records.run_folder import RunKind

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
#: A kill is aimed at the moment a file appears that has one of these patterns.
AIMED = (".lock", "run.json", ".*.tmp", "evidence/*.parquet", "evidence/.*.tmp", "summary.json", "checkpoint.pt")
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
    arguments = parser.parse_args()
    runs, log = prepare(arguments.place), arguments.place / "kills.jsonl"
    done = log.read_text().splitlines() if log.exists() else []
    with _cluster() as address:
        serial = runs["serial"]
        runs["dask"] = SmallRun("dask", serial.kind, (*serial.arguments[:-2], "--cluster", address))
        audit = _whole(serial, arguments.place)  # the same, wherever its parts are computed
        wholes = {
            name: audit if run.kind is RunKind.AUDIT else _whole(run, arguments.place) for name, run in runs.items()
        }
        for number in range(len(done), arguments.kills):
            generator = random.Random(f"{arguments.seed} {number}")
            name = list(runs)[number % len(runs)]
            found = _kill_and_finish(runs[name], arguments.place / "killed", wholes[name], generator)
            with log.open("a") as file:
                file.write(json.dumps({"number": number, "run": name, **found}) + "\n")
            print(number, name, found, flush=True)
    report([json.loads(line) for line in log.read_text().splitlines()])


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


def _whole(run: SmallRun, place: Path) -> Path:
    out = place / f"whole-{run.name}"
    if not (out / "summary.json").exists():
        finish(run, out)
    return out


def _kill_and_finish(run: SmallRun, out: Path, whole: Path, generator: random.Random) -> dict[str, Any]:
    shutil.rmtree(out, ignore_errors=True)
    kills = [_kill(run, out, generator) for _ in range(generator.choice((1, 1, 2)))]
    finish(run, out)
    equal = content(run.kind, out) == content(run.kind, whole) and _files(run, out) == _files(run, whole)
    leftovers = [str(file) for file in out.rglob(".*.tmp")]
    return {"kills": kills, "equal": equal and not leftovers}


def _files(run: SmallRun, out: Path) -> dict[str, bytes]:
    files = [file for pattern in EXACT[run.kind] for file in sorted(out.glob(pattern))]
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def _kill(run: SmallRun, out: Path, generator: random.Random) -> dict[str, Any]:
    number, aimed = generator.choice(SIGNALS), generator.random() < 0.5
    target, delay = generator.choice(AIMED), generator.uniform(0.5, 12.0)
    said = out.with_suffix(".stderr")
    with said.open("w") as stderr:
        process = subprocess.Popen(
            run.command(out), stdout=subprocess.DEVNULL, stderr=stderr, env=environment(), start_new_session=True
        )
        _wait(process, out, target, None if aimed else delay)
        children, living = _descendants(process.pid), process.poll() is None
        begin, answer = time.monotonic(), None
        if living and number == signal.SIGINT:  # as a terminal does
            os.killpg(process.pid, number)
        elif living:
            process.send_signal(number)
        while process.poll() is None:
            if answer is None and "stopping" in said.read_text():
                answer = time.monotonic() - begin
            time.sleep(0.005)
        seconds = time.monotonic() - begin
    words = said.read_text()
    if answer is None and "stopping" in words:
        answer = seconds
    return {
        "signal": number.name,
        "moment": target if aimed else f"{delay:.1f} s",
        "living": living,
        "code": process.returncode,
        "answer": answer,
        "seconds": seconds,
        "traceback": "Traceback" in words,
        "alive": sum(not _ends(child) for child in children),
    }


def _wait(process: subprocess.Popen[bytes], out: Path, target: str, delay: float | None) -> None:
    begin, there = time.monotonic(), {*out.glob(target)}
    while process.poll() is None:
        if delay is not None and time.monotonic() - begin >= delay:
            return
        if delay is None and {*out.glob(target)} - there:
            return
        time.sleep(0.001)


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
