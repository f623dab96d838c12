"""Several processes that train one model, started by `torchrun`; one process alone is the case of one rank."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from attnaudit.errors import UsageError


@dataclass(frozen=True)
class Ranks:
    """This process among `count`."""

    rank: int = 0
    count: int = 1

    @property
    def leads(self) -> bool:
        """Whether it is the one that writes and talks."""
        return self.rank == 0

    def share(self, batch: int) -> int:
        """How many images of a batch this rank takes."""
        if batch % self.count:
            raise UsageError(f"A batch of {batch} does not split evenly among {self.count} processes.")
        return batch // self.count

    def total(self, sums: Tensor) -> Tensor:
        """Sums over all ranks."""
        if self.count > 1:
            dist.all_reduce(sums)
        return sums


@contextmanager
def started_ranks(device: str) -> Iterator[tuple[Ranks, str]]:
    """Join the processes that `torchrun` started, if it did; with the device of this one."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Ranks(), device
        return
    if device == "cuda":
        device = f"cuda:{int(os.environ['LOCAL_RANK'])}"
        torch.cuda.set_device(device)
    dist.init_process_group("gloo" if device == "cpu" else "nccl")
    try:
        yield Ranks(dist.get_rank(), count), device
    finally:
        dist.destroy_process_group()
