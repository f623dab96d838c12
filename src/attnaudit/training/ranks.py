"""Several processes that train one model: what each has seen, put together. A process by itself is a special case."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import pad

from attnaudit.errors import AttnAuditError

Result = TypeVar("Result")


def count() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def is_main() -> bool:
    """Whether this process writes and talks."""
    return count() == 1 or dist.get_rank() == 0


def everyones(own: Result) -> list[Result]:
    """A small object of every process, in the order of the ranks."""
    if count() == 1:
        return [own]
    found = [own] * count()
    dist.all_gather_object(found, own)
    return found


def together(work: Callable[[], Result]) -> Result:
    """What `work` gives here; where it fails on one process it fails on all, which would wait for that one forever."""
    failure: list[AttnAuditError] = []
    try:
        result = work()
    except AttnAuditError as error:
        failure.append(error)
    for rank, failed in enumerate(everyones(failure)):
        if failed:
            raise failure[0] if failure else type(failed[0])(f"Rank {rank}: {failed[0]}")
    return result


def side_by_side(numbers: Tensor) -> Tensor:
    """The numbers of all processes along the last axis, in the order of the ranks; that axis may differ in length."""
    if count() == 1:
        return numbers
    lengths = everyones(numbers.shape[-1])
    device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
    padded = pad(numbers.to(device), (0, max(lengths) - numbers.shape[-1])).contiguous()
    received = [torch.empty_like(padded) for _ in lengths]
    dist.all_gather(received, padded)
    parts = [part[..., :length] for part, length in zip(received, lengths, strict=True)]
    return torch.cat(parts, dim=-1).to(numbers.device)
