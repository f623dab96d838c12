"""How many CPU threads torch and BLAS may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads inside the block; one is best for small batched LAPACK calls."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def half_the_threads() -> AbstractContextManager[None]:
    """Leave half of the cores to others: a thread that waits for a busy core makes many small steps far slower."""
    return torch_threads(max(1, torch.get_num_threads() // 2))


@contextmanager
def single_threaded() -> Iterator[None]:
    """One thread for torch and BLAS, so that sums do not depend on the number of cores."""
    with torch_threads(1), threadpool_limits(1):
        yield
