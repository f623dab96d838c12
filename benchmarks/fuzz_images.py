"""Audit folders of damaged and hostile images, and count what goes wrong.

    python -m benchmarks.fuzz_images [--count 200] [--memory 2500MB] [--seed 0] [FORMAT …]

For each format, images of many kinds are damaged at random, hostile ones are added, and `attnaudit audit` reads them
all in a process of its own. Every image must be measured or skipped by name: no traceback, no program started, and a
peak of memory inside --memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.damaged_images import VARIANTS, damaged

from attnaudit.records.engine import parse_memory

MODEL = ("test_vit", "--random-weights", "--references", "gaussian")


@dataclass(frozen=True)
class Result:
    """What became of the images of one format."""

    format: str
    images: int
    measured: int
    skipped: int
    exit_code: int
    tracebacks: int
    programs: int
    peak: int
    seconds: float


def audit(kind: str, count: int, memory: str, seed: int, folder: Path) -> Result:
    """Write the images of a format and audit them."""
    images, out, bin_folder = folder / kind, folder / f"run-{kind}", folder / "bin"
    for place in (images, bin_folder):
        place.mkdir(parents=True, exist_ok=True)
    for place, content in enumerate(damaged(kind, count, seed)):
        (images / f"{place:04}.{kind}").write_bytes(content)
    for program in ("gs", "gswin64c", "djpeg", "ppmtogif"):  # what decoders of Pillow might start
        (bin_folder / program).write_text(f"#!/bin/sh\ntouch {folder / 'started'}-$$\n")
        (bin_folder / program).chmod(0o755)
    command = [sys.executable, "-m", "attnaudit", "audit", *MODEL, "--images", str(images), "--limit", str(count)]
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    with (folder / f"{kind}.log").open("w+") as log:
        begun = time.perf_counter()
        child = subprocess.Popen(
            [*command, "--memory", memory, "--workers", "1", "--out", str(out), "--json"],
            env=environment,
            stdout=log,
            stderr=log,
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begun
        log.seek(0)
        printed = log.read()
    summary = json.loads((out / "summary.json").read_text()) if (out / "summary.json").exists() else {}
    skipped = len(summary.get("skipped_inputs", ()))
    return Result(
        kind,
        count,
        count - skipped,
        skipped,
        child.returncode,
        printed.count("Traceback"),
        len(list(folder.glob("started-*"))),
        usage.ru_maxrss * 1024,
        seconds,
    )


def main(arguments: list[str] | None = None) -> int:
    """Print a line per format; the exit code is 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("formats", nargs="*", default=list(VARIANTS), metavar="FORMAT")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--memory", default="2500MB")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    allowed, wrong = parse_memory(given.memory), 0
    print(f"{'format':6} images measured skipped exit tracebacks programs  peak MB (--memory {given.memory}) seconds")
    for kind in given.formats:
        with tempfile.TemporaryDirectory() as folder:
            found = audit(kind, given.count, given.memory, given.seed, Path(folder))
        print(
            f"{found.format:6} {found.images:6} {found.measured:8} {found.skipped:7} {found.exit_code:4} "
            f"{found.tracebacks:10} {found.programs:8} {found.peak / 1e6:8.0f} {found.seconds:26.0f}",
            flush=True,
        )
        wrong += found.exit_code != 0 or found.tracebacks + found.programs > 0 or found.peak > allowed
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
