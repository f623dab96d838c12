"""Measure models in a process of their own, which is stopped at a time limit and replaced after many models."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection

from benchmarks.coverage.case import Case
from benchmarks.coverage.result import SLOW, Result

#: Models that one process measures; libraries and models leave memory behind.
MODELS_PER_PROCESS = 60


class Worker:
    """A process that measures one model at a time."""

    def __init__(self, seconds: float, device: str = "cpu") -> None:
        self._seconds, self._device = seconds, device
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None
        self._done = 0

    def measure(self, case: Case) -> Result:
        """The result for one model; one that takes too long or ends the process is not run."""
        if self._process is None:
            self._start()
        assert self._pipe is not None
        self._pipe.send(case)
        try:
            if self._pipe.poll(self._seconds):
                result: Result = self._pipe.recv()
            else:
                result = self._failed(case, f"it {SLOW} {self._seconds:g} s")
        except EOFError:
            result = self._failed(case, "its process ended")
        self._done += 1
        if self._process is not None and self._done >= MODELS_PER_PROCESS:
            self.stop()
        return result

    def _failed(self, case: Case, reason: str) -> Result:
        self.stop()
        return Result(case.library, case.model, case.implementation, not_run=reason, seconds=self._seconds)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._device), daemon=True)
        self._process.start()
        theirs.close()
        self._done = 0

    def stop(self) -> None:
        """End the process; the next model starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def _serve(pipe: Connection, device: str) -> None:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch

    torch.set_num_threads(1)
    from benchmarks.coverage.measure import measure

    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        pipe.send(measure(case, device))
