"""Random numbers that depend on a seed and a place, not on what ran before, so that a resumed run is the same run."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derived_seed(*parts: int | str) -> int:
    """A seed of 63 bits from numbers and words: equal parts, equal seed."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def seed_everything(*parts: int | str) -> None:
    """Put Python's, numpy's and torch's global generators (timm draws from all three) where these parts say."""
    seed = derived_seed(*parts)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def generator(*parts: int | str) -> torch.Generator:
    """A CPU generator of its own."""
    return torch.Generator().manual_seed(derived_seed(*parts))


@contextmanager
def global_state_kept() -> Iterator[None]:
    """Leave the global generators as they were found."""
    python, legacy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    # Not where torch only could use a GPU: a forked worker that reads images must not start CUDA.
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)
        torch.set_rng_state(cpu)
        if devices:
            torch.cuda.set_rng_state_all(devices)
