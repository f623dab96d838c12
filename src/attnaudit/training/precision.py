"""Mixed precision, in one place."""

from __future__ import annotations

import torch


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """bfloat16 products for `bf16`, nothing for `fp32`."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")
