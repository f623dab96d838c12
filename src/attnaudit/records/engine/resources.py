"""Where units run and how much memory they may take: how long a run lasts, never what comes out of it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from attnaudit.display import counted
from attnaudit.errors import UsageError

#: What Python, torch, timm and Arrow take before there is any model (measured: 510 MB).
PROCESS_BYTES = 600 * 10**6
#: Where the machine does not say how much it has.
_FALLBACK = 8 * 10**9
_FACTORS = {"": 1, "b": 1} | {
    f"{letter}{suffix}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for suffix, base in (("b", 1000), ("ib", 1024))
}
_ADDRESS = re.compile(r"(\w+://)?(\[[0-9a-fA-F:]+\]|[^\s/:]+):\d+")
_UNITS_PER_WORKER = 2  # a worker needs seconds to start, so it should have something to do
_COMFORTABLE = 2 * PROCESS_BYTES  # what a worker gets if nobody says how many there should be


def parse_memory(text: str) -> int:
    """Bytes from `8GB`, `512MB`, `1.5GiB` or a plain number of bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in _FACTORS:
        raise UsageError(f"--memory must be a size such as 8GB, 512MB or 8GiB, got {text!r}.")
    return int(float(found[1]) * _FACTORS[found[2]])


def format_size(size: int) -> str:
    """Bytes as people write them."""
    if size < 10**6:
        return counted(size, "byte")
    return f"{size / 10**9:.1f} GB" if size >= 10**9 else f"{size / 10**6:.0f} MB"


def default_memory() -> int:
    """Half of what the machine has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (ValueError, OSError, AttributeError):  # not every system has these names, or the function
        return _FALLBACK


@dataclass(frozen=True)
class Resources:
    """`workers` processes on this machine (None: as many as pay off) that share `memory` bytes; or a dask `cluster`.

    On a cluster each worker may take `memory`: which of them share a machine is not known here.
    """

    workers: int | None = 1
    cluster: str | None = None
    memory: int = field(default_factory=default_memory)

    def __post_init__(self) -> None:
        workers = 1 if self.workers is None else self.workers
        if workers < 1:
            raise UsageError(f"--workers must be ≥ 1, got {workers}.")
        if self.cluster is not None and workers != 1:
            raise UsageError("--workers and --cluster exclude each other: the cluster has its own workers.")
        if self.cluster is not None and not _ADDRESS.fullmatch(self.cluster):
            raise bad_address(self.cluster)
        if self.memory < workers * PROCESS_BYTES:
            raise UsageError(
                f"--memory {format_size(self.memory)} is too little for {workers} process{'es' if workers > 1 else ''}:"
                f" each takes {format_size(PROCESS_BYTES)} before it has a model."
            )

    def processes(self, units: int) -> int:
        """How many processes of this machine share this number of units."""
        if self.workers is not None:
            return max(1, min(self.workers, units))
        return max(1, min(os.cpu_count() or 1, units // _UNITS_PER_WORKER, self.memory // _COMFORTABLE))

    def memory_each(self, processes: int) -> int:
        """What each of them may take."""
        return self.memory // processes


def bad_address(text: str) -> UsageError:
    """The error for what is not the address of a scheduler."""
    return UsageError(f"--cluster must be an address such as tcp://HOST:PORT, got {text!r}.")
