"""Which device a computation runs on."""

from __future__ import annotations

import torch

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
