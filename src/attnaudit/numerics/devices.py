"""Which device a computation runs on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import nn

from attnaudit.errors import UsageError

DEVICES = ("auto", "cpu", "cuda")


def device_name(device: str) -> str:
    """`cpu` or `cuda`; `auto` is the GPU if there is one.

    Raises:
        UsageError: the device is unknown, or is not there.
    """
    if device not in DEVICES:
        raise UsageError(f"device must be {', '.join(DEVICES[:-1])} or {DEVICES[-1]}, got {device!r}.")
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError("--device cuda is not available, as torch finds no CUDA device: use --device cpu.")
    return device


def device_of(module: nn.Module) -> str:
    """The device that a module is on; `cpu` for one without parameters and buffers."""
    return next((tensor.device.type for tensor in chain(module.parameters(), module.buffers())), "cpu")


@contextmanager
def put_back(module: nn.Module) -> Iterator[None]:
    """Whatever device the module is moved to within, it ends where it was."""
    before = device_of(module)
    try:
        yield
    finally:
        if device_of(module) != before:
            module.to(before)
