"""Reduced precision of products."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """bfloat16 products for `bf16`; no change for `fp32` and `tf32`."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """For `tf32`, let a GPU round the float32 factors of products to 10 bits, gradients too; else no change."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
