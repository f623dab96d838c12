"""How much memory a process of an audit may take: reading the setting, and refusing what cannot fit into it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from torch import Tensor, nn

from attnaudit.audit.batches import batch_size, matrix_bytes
from attnaudit.capture.heads import Heads
from attnaudit.errors import UsageError

#: What Python, torch, timm and Arrow take before there is any model (measured: 510 MB).
PROCESS_BYTES = 600 * 10**6
#: How many matrices of tokens x tokens a batch needs at its peak (measured: 17, all measures and references).
_MATRICES = 20
#: Where the machine does not say how much it has.
_FALLBACK = 8 * 10**9
_FACTORS = {"": 1, "b": 1} | {
    f"{letter}{suffix}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for suffix, base in (("b", 1000), ("ib", 1024))
}


def parse_memory(text: str) -> int:
    """Bytes from `8GB`, `512MB`, `1.5GiB` or a plain number of bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in _FACTORS:
        raise UsageError(f"--memory {text!r} is no size: write it as 8GB, 512MB or 8GiB.")
    return int(float(found[1]) * _FACTORS[found[2]])


def default_memory() -> int:
    """Half of what the machine has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (ValueError, OSError, AttributeError):  # not every system has these names, or the function
        return _FALLBACK


def in_words(size: int) -> str:
    """As one writes it."""
    return f"{size / 10**9:.1f} GB" if size >= 10**9 else f"{size / 10**6:.0f} MB"


def check_fits(layers: Sequence[Heads], module: nn.Module, memory: int) -> None:
    """Refuse, before anything is measured, heads that take more than the setting allows.

    Counted are the process, the model, all captured layers, and what measuring the largest batch needs.
    """
    held = PROCESS_BYTES + sum(tensor.nbytes for tensor in module.state_dict().values())
    held += sum(_bytes(heads) for heads in layers)
    dearest = max(layers, key=_batch_bytes)
    needed = held + _batch_bytes(dearest)
    if needed > memory:
        raise UsageError(
            f"Measuring heads of {dearest.tokens:,} tokens takes about {in_words(needed)} here, more than the "
            f"{in_words(memory)} that --memory leaves each process: give more, use fewer --workers, or shorter inputs."
        )


def _batch_bytes(heads: Heads) -> int:
    return _MATRICES * matrix_bytes(heads) * batch_size(heads)


def _bytes(heads: Heads) -> int:
    return sum(value.nbytes for value in vars(heads).values() if isinstance(value, Tensor))
