"""Random weights that make attention far from uniform, so that a wrong capture cannot agree with it."""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def spread(model: nn.Module) -> None:
    """Redraw matrices with entries below 1/√(inputs), as libraries initialise them; then scores are near 1."""
    for parameter in model.parameters():
        if parameter.dim() < 2 or not parameter.is_floating_point() or parameter.numel() < 2:
            continue
        target = parameter[0].numel() ** -0.5
        if float(parameter.std()) < target / 2:
            parameter.normal_(0.0, target)
