"""What networks cost, in training and inference, as it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from attnaudit.errors import RunFolderError, SettingError
from attnaudit.records import json_file
from attnaudit.records.architecture import Architecture
from attnaudit.records.ranges import check_range, check_whole

#: The file of a table.
COST_FILE = "cost.json"


@dataclass(frozen=True)
class PassTimes:
    """Seconds of a pass over a batch, and of the same pass with symmetric attention, run in turn with it."""

    own: tuple[float, ...]
    symmetric: tuple[float, ...]

    def __post_init__(self) -> None:
        counts = len(self.own), len(self.symmetric)
        if counts[0] != counts[1] or not self.own:
            raise SettingError(f"every time needs one of symmetric attention, got {counts[0]} and {counts[1]}.")
        for seconds in (*self.own, *self.symmetric):  # no other time has a logarithm, of which intervals are
            check_range(0, open_low=True, seconds=seconds)

    @property
    def median(self) -> float:
        """In seconds."""
        return median(self.own)


@dataclass(frozen=True)
class PassCost:
    """What inference costs, or forward and backward.

    Attributes:
        operations: for one image; a multiply-add is two.
        memory: the most bytes that torch held for a batch, beyond the network itself.
        times: of plain PyTorch.
        graph: of a CUDA graph of the same pass; None on a CPU, and where none could be recorded.
    """

    operations: int
    memory: int
    times: PassTimes
    graph: PassTimes | None

    def __post_init__(self) -> None:
        check_whole(1, operations=self.operations, memory=self.memory)


@dataclass(frozen=True)
class NetworkCost:
    """One network: which size and attention it is called by, what it is, and what it costs."""

    size: str
    attention: str
    architecture: Architecture
    parameters: int
    inference: PassCost
    training: PassCost


@dataclass(frozen=True)
class CostTable:
    """Networks measured on one device in one run, which took `seconds`."""

    device: str
    torch: str
    precision: str
    batch: int
    seconds: float
    networks: tuple[NetworkCost, ...]

    @property
    def sizes(self) -> tuple[str, ...]:
        """Their names, in the order in which they were measured."""
        return tuple(dict.fromkeys(network.size for network in self.networks))

    def of_size(self, size: str) -> tuple[NetworkCost, ...]:
        """All networks of one size."""
        return tuple(network for network in self.networks if network.size == size)


def read_costs(place: Path) -> CostTable:
    """The table of a folder that `attnaudit cost` wrote, or of its file.

    Raises:
        RunFolderError: there is none, or it was changed.
    """
    file = place / COST_FILE if place.is_dir() else place
    try:
        return json_file.read(CostTable, file, "a table of costs")
    except FileNotFoundError:
        raise RunFolderError(f"{file} does not exist: give a folder written by attnaudit cost.") from None
