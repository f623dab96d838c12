"""Where the units of an audit run and how much memory they may take: how long it lasts, never what comes out."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from attnaudit.audit.memory import PROCESS_BYTES, default_memory, in_words
from attnaudit.errors import UsageError

_ADDRESS = re.compile(r"(\w+://)?(\[[0-9a-fA-F:]+\]|[^\s/:]+):\d+")
_UNITS_PER_WORKER = 2  # a worker needs seconds to start, so it should have something to do
_COMFORTABLE = 2 * PROCESS_BYTES  # what a worker gets if nobody says how many there should be


@dataclass(frozen=True)
class Resources:
    """`workers` processes on this machine (None: as many as pay off) that share `memory` bytes; or a dask `cluster`.

    On a cluster each worker may take `memory`: which of them share a machine is not known here.
    """

    workers: int | None = 1
    cluster: str | None = None
    memory: int = field(default_factory=default_memory)

    def __post_init__(self) -> None:
        if self.cluster is not None and self.workers not in (None, 1):
            raise UsageError("--workers and --cluster exclude each other: the cluster has its own workers.")
        if self.cluster is not None and not _ADDRESS.fullmatch(self.cluster):
            raise UsageError(f"--cluster {self.cluster!r} is no address: write it as tcp://HOST:PORT.")
        if self.memory < (self.workers or 1) * PROCESS_BYTES:
            raise UsageError(
                f"--memory {in_words(self.memory)} is too little for {self.workers or 1} "
                f"process{'es' if (self.workers or 1) > 1 else ''}: each takes "
                f"{in_words(PROCESS_BYTES)} before it has a model."
            )

    def processes(self, units: int) -> int:
        """How many processes of this machine work on so many units."""
        if self.workers is not None:
            return max(1, min(self.workers, units))
        return max(1, min(os.cpu_count() or 1, units // _UNITS_PER_WORKER, self.memory // _COMFORTABLE))

    def memory_each(self, processes: int) -> int:
        """What each of them may take."""
        return self.memory // processes
