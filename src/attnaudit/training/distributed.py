"""Where a training runs: its device, and the processes that share it. One process is the case of one rank."""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import pad

from attnaudit.errors import AttnAuditError, UsageError

Result = TypeVar("Result")


@dataclass(frozen=True)
class Ranks:
    """This process, number `rank` of `count` that train one model."""

    rank: int = 0
    count: int = 1

    @staticmethod
    def current() -> Ranks:
        """The state of `torch.distributed`; one rank if it is not initialised."""
        if dist.is_available() and dist.is_initialized():
            return Ranks(dist.get_rank(), dist.get_world_size())
        return Ranks()

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and reports progress."""
        return self.rank == 0

    def share(self, batch: int) -> int:
        """The number of examples of a batch that each rank takes."""
        if batch % self.count:
            raise UsageError(f"batch must be a multiple of the {self.count} processes, got {batch}.")
        return batch // self.count

    def total(self, sums: Tensor) -> Tensor:
        """Sums over all ranks."""
        if self.count > 1:
            dist.all_reduce(sums)
        return sums

    def mean(self, number: Tensor) -> Tensor:
        """The mean over all ranks, which no rank waits for on a GPU."""
        return self.total(number) / self.count if self.count > 1 else number


@dataclass(frozen=True)
class DeviceSettings:
    """Where and how a training runs. It changes the result only by rounding, by the device and by the number of ranks.

    Ranks share every batch, but each draws its own random numbers, and so does each kind of device. A training with a
    monitor must be resumed with the same number of ranks.

    Args:
        device: a torch device.
        workers: processes that decode images.
        compiled: whether to use `torch.compile`.
        graph: whether to record the training step as a CUDA graph.
        save_after: seconds between two checkpoints; one is also written at the end.
        ranks: this process among those that share the training.
    """

    device: str = "cpu"
    workers: int = 0
    compiled: bool = False
    graph: bool = False
    save_after: float = 60.0
    ranks: Ranks = field(default_factory=Ranks)


@contextmanager
def joined_processes(device: str) -> Iterator[tuple[Ranks, str]]:
    """Join the processes started by `torchrun`, if there are any; yields this process' rank and device."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Ranks(), device
        return
    if device == "cuda":
        device = f"cuda:{int(os.environ['LOCAL_RANK'])}"
        torch.cuda.set_device(device)
    with process_group("gloo" if device == "cpu" else "nccl"):
        yield Ranks(dist.get_rank(), count), device


@contextmanager
def process_group(backend: str, **meeting: Any) -> Iterator[None]:
    """The processes that `init_process_group` brings together, for as long as the block runs.

    The threads of gloo must end with it: one that gives back a tensor while Python shuts down aborts the process. They
    do when nothing holds the group any more.
    """
    # DDP imports this module, and the defaults of its functions hold the group that there is by then.
    importlib.import_module("torch.distributed.nn.functional")
    dist.init_process_group(backend, **meeting)
    try:
        yield
    finally:
        gc.collect()  # models in DDP that are part of a cycle
        dist.destroy_process_group()


def gather(own: Result) -> list[Result]:
    """A small object from every rank, in the order of the ranks."""
    count = Ranks.current().count
    if count == 1:
        return [own]
    found = [own] * count
    dist.all_gather_object(found, own)
    return found


def on_all_ranks(work: Callable[[], Result]) -> Result:
    """Run `work` on every rank; an error on one rank is raised on all, which would otherwise wait for it forever."""
    failure: list[AttnAuditError] = []
    try:
        result = work()
    except AttnAuditError as error:
        failure.append(error)
    for rank, failed in enumerate(gather(failure)):
        if failed:
            raise failure[0] if failure else type(failed[0])(f"Rank {rank}: {failed[0]}")
    return result


def concatenate_ranks(numbers: Tensor) -> Tensor:
    """The tensors of all ranks along the last axis, which may differ in length."""
    if Ranks.current().count == 1:
        return numbers
    lengths = gather(numbers.shape[-1])
    device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
    padded = pad(numbers.to(device), (0, max(lengths) - numbers.shape[-1])).contiguous()
    received = [torch.empty_like(padded) for _ in lengths]
    dist.all_gather(received, padded)
    parts = [part[..., :length] for part, length in zip(received, lengths, strict=True)]
    return torch.cat(parts, dim=-1).to(numbers.device)
