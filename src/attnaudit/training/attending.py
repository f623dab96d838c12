"""What the attention layers of a trained network end up attending with."""

from __future__ import annotations

from dataclasses import asdict

import torch
from torch import Tensor, nn

from attnaudit.attention import diagnosing
from attnaudit.capture.capture import evaluating


@torch.no_grad()
def attended(model: nn.Module, inputs: Tensor) -> dict[str, dict[str, float]]:
    """Entropy, attention to itself and, for RPC-Attention, the share of S and the residual: means, by layer.

    Of RPC-Attention this is the last iteration. Softmax attention is not ours and does not say.
    """
    with evaluating(model), diagnosing(model) as layers:
        model(inputs)
    last = {name: asdict(passes[-1]) for name, passes in layers.items() if passes}
    return {
        name: {quantity: float(values.mean()) for quantity, values in seen.items() if values is not None}
        for name, seen in last.items()
    }
