"""Reduced precision of products."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


@contextmanager
def autocast(device: torch.device, precision: str) -> Iterator[None]:
    """bfloat16 products for `bf16`; no change for `fp32` and `tf32`.

    On a CPU, where gradients are wanted, attention is written out: the backward pass of torch's fused kernel is slow in
    bfloat16 (on 17 tokens twelve times as slow as written out, on 65 more than three times, on 197 a fifth slower).
    """
    with ExitStack() as stack:
        if precision == "bf16":
            stack.enter_context(torch.autocast(device.type, dtype=torch.bfloat16))
            if device.type == "cpu" and torch.is_grad_enabled():
                stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        yield


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """For `tf32`, let a GPU round the float32 factors of products to 10 bits, gradients too; else no change."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
