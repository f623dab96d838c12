"""What an experiment runs side by side: trainings, and evaluations of what is trained."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import time
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attnaudit.display import enumerated
from attnaudit.errors import AttnAuditError, UsageError
from attnaudit.records.files import write_whole

#: A folder with this file is finished.
SUMMARY = "summary.json"


class Job(typing.Protocol):
    """A command of attnaudit that writes a folder."""

    @property
    def folder(self) -> Path:
        """Where its results lie."""

    @property
    def needs(self) -> Sequence[Job]:
        """What must be finished before it can start."""

    def words(self) -> list[str]:
        """The command, known when what it needs is finished."""


@dataclass(frozen=True)
class Training:
    """One network to be, trained by a recipe of an experiment."""

    recipe: str
    seed: int
    arguments: argparse.Namespace = field(repr=False, compare=False)
    #: Where the recipes of the experiment are, and what their names begin with.
    recipes: typing.ClassVar[Path]
    prefix: typing.ClassVar[str]
    #: The settings that are known only when what a network needs is finished.
    late: typing.ClassVar[tuple[str, ...]] = ()

    @property
    def folder(self) -> Path:
        """Where it is trained."""
        path: Path = self.arguments.runs / f"{self.prefix}{self.recipe}-{self.seed}"
        return path

    @property
    def needs(self) -> tuple[Training, ...]:
        """Nothing, unless an experiment says otherwise."""
        return ()

    def changes(self) -> Mapping[str, object]:
        """Settings of the recipe that are others for this network: none, unless an experiment says otherwise."""
        return {}

    def words(self) -> list[str]:
        """A call of `attnaudit train`."""
        return self._words(self.changes())

    def words_known(self, words: Sequence[str]) -> tuple[list[str], list[str]]:
        """Those of an earlier call, and of this one, without the settings that are not known before others finish."""
        if not self.needs:
            return list(words), self.words()
        late = [place for place, word in enumerate(words) if word.partition("=")[0] in self.late]
        left = {place - before for place in late for before in (0, 1)}  # with the --set before it
        return [word for place, word in enumerate(words) if place not in left], self._words({})

    def _words(self, changes: Mapping[str, object]) -> list[str]:
        file = self.recipes / f"{self.prefix}{self.recipe}.yaml"
        return training(file, self.seed, self.folder, self.arguments, changes)


@dataclass(frozen=True)
class Share:
    """Networks under the conditions of an evaluation: one of them, or several that share what it reads."""

    folder: Path
    networks: tuple[Job, ...]
    options: tuple[str, ...]
    others: tuple[Job, ...] = ()

    @property
    def needs(self) -> tuple[Job, ...]:
        """Its networks, and others that the options name."""
        return (*self.networks, *self.others)

    def words(self) -> list[str]:
        """A call of `attnaudit robust`."""
        return evaluation(self.networks, self.options, self.folder)


def training(
    recipe: Path, seed: int, folder: Path, arguments: argparse.Namespace, changes: Mapping[str, object]
) -> list[str]:
    """A call of `attnaudit train`; `changes` are settings of the recipe."""
    words = ["train", str(recipe), "--seed", str(seed), "--data", str(arguments.data)]
    words += ["--device", arguments.device, "--out", str(folder)]
    for name, value in changes.items():
        words += ["--set", f"{name}={value}"]
    return [*words, *shlex.split(arguments.train)]


def evaluation(networks: Sequence[Job], options: Sequence[str], folder: Path) -> list[str]:
    """A call of `attnaudit robust`."""
    return ["robust", *(str(job.folder) for job in networks), *options, "--out", str(folder)]


def numbers_in(text: str) -> list[int]:
    """The whole numbers of an option, such as seeds."""
    return [int(number) for number in text.split(",") if number]


def finished(job: Job) -> bool:
    """Whether its results are there."""
    return (job.folder / SUMMARY).exists()


def check_command(job: Job) -> None:
    """Refuse results of another command: with other options, the names of folders are the same.

    What waits for others, such as a temperature, is not known before, and is not compared.

    Raises:
        UsageError: the folder was written by another command.
    """
    record = command_file(job)
    if not record.exists():
        return
    before = json.loads(record.read_text())
    before, now = job.words_known(before) if isinstance(job, Training) else (before, job.words())
    if before != now:
        changed = enumerated([word for word in now if word not in before] or ["fewer options"], "and")
        raise UsageError(
            f"{job.folder} was made with other options (new: {changed}): give --runs another folder, or remove it."
        )


def command_file(job: Job) -> Path:
    """Where the words of a job's command are written down, next to its folder and its log."""
    return job.folder.with_name(f"{job.folder.name}.command.json")


def start(words: list[str], log: Path) -> subprocess.Popen[bytes]:
    """A command of attnaudit whose talk is kept."""
    with log.open("ab") as file:
        return subprocess.Popen([sys.executable, "-m", "attnaudit", *words], stdout=file, stderr=file)


def run_jobs(jobs: Sequence[Job], at_a_time: int, deadline: float) -> bool:
    """Whether all are finished, as many at a time, in this order as far as they need each other.

    One that fails is said and not tried again, nor is what needs it. What runs when the time is over is stopped.
    """
    for job in filter(finished, jobs):
        check_command(job)
    waiting = [job for job in jobs if not finished(job)]
    running: dict[Job, subprocess.Popen[bytes]] = {}
    failed: set[Job] = set()
    try:
        while (waiting or running) and time.monotonic() < deadline:
            for job, process in list(running.items()):
                if process.poll() is not None:
                    del running[job]
                    print(f"{job.folder.name}: {'done' if finished(job) else 'FAILED'}", flush=True)
                    failed |= set() if finished(job) else {job}
            waiting = [job for job in waiting if not failed.intersection(job.needs)]
            ready = [job for job in waiting if all(finished(other) for other in job.needs)]
            for job in ready[: at_a_time - len(running)]:
                waiting.remove(job)
                try:
                    words = job.words()
                except AttnAuditError as error:
                    print(f"{job.folder.name}: not started: {error}", flush=True)
                    failed.add(job)
                    continue
                write_whole(command_file(job), json.dumps(words).encode())
                running[job] = start(words, job.folder.with_suffix(".log"))
            if waiting and not ready and not running:
                break
            time.sleep(0.2)
    finally:  # what was started does not outlive this program, however it ends
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
    left = [job.folder.name for job in jobs if not finished(job)]
    if left:
        print(f"{len(left)} of {len(jobs)} are left: {', '.join(left)}", flush=True)
    return not left
