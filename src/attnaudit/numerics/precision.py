"""Mixed precision, in one place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """bfloat16 products for `bf16`, nothing for `fp32` and `tf32`."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")


@contextmanager
def short_products(precision: str) -> Iterator[None]:
    """For `tf32`, let a GPU's products round float32 factors to 10 bits, of gradients too; nothing for the others."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
