"""Random streams that follow from a seed and a purpose, not from what ran before: a resumed run is the same run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.numerics.digest import content_digest

#: From this many draws on, several threads are worth their start; numpy draws without holding Python's lock.
_MANY, _THREADS = 64, 8


def derived_seed(*parts: int | str) -> int:
    """A seed of 63 bits from numbers and words: equal parts, equal seed."""
    return _hashed(repr(parts)) >> 1


def torch_generator(*parts: int | str) -> torch.Generator:
    """A CPU generator for these parts."""
    return torch.Generator().manual_seed(derived_seed(*parts))


def numpy_generator(name: str) -> np.random.Generator:
    """A generator for a name."""
    return np.random.default_rng(_hashed(name))


def drawn(names: Sequence[str], draw: Callable[[int, np.random.Generator], object], *, threads: bool) -> None:
    """Call `draw` with the place and the generator of every name, in several `threads` if that pays.

    It does for draws of many numbers, where a GPU would have to wait for them. Every name has a stream of its own, so
    that neither the order nor the number of threads changes a number.
    """

    def of(places: range) -> None:
        for place in places:
            draw(place, numpy_generator(names[place]))

    if not threads or len(names) < _MANY:
        return of(range(len(names)))
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(of, (range(first, len(names), _THREADS) for first in range(_THREADS))))
    return None


def normal_draws(names: Sequence[str], shape: tuple[int, ...], device: torch.device) -> Float[Tensor, "names ..."]:
    """N(0, 1) of this shape for every name."""
    found = torch.empty(len(names), *shape, dtype=torch.float64)
    rows = found.numpy()
    fill = lambda place, generator: generator.standard_normal(out=rows[place])  # noqa: E731
    drawn(names, fill, threads=device.type != "cpu")
    return found.to(device)


def seed_everything(*parts: int | str) -> None:
    """Seed the global generators of Python, numpy and torch; timm draws from all three."""
    seed = derived_seed(*parts)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's CPU generator inside the block, as for random weights; its state is restored afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def preserved_random_state() -> Iterator[None]:
    """Restore the global generators of Python, numpy and torch after the block."""
    python, legacy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    # Only if CUDA is in use already: a forked worker that reads images must not start it.
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)
        torch.set_rng_state(cpu)
        if devices:
            torch.cuda.set_rng_state_all(devices)


@contextmanager
def preserved_generators() -> Iterator[None]:
    """Replace the generators of GPUs by copies if a CUDA graph cannot be recorded: they would give no more numbers."""
    kept = [(generator, generator.clone_state()) for generator in torch.cuda.default_generators]
    try:
        yield
    except BaseException:
        for generator, before in kept:
            generator.graphsafe_set_state(before)
        raise


def _hashed(text: str) -> int:
    """64 bits."""
    return int(content_digest([text.encode()], size=8), 16)
