"""The temperature of attention, and that at which symmetric attention has the entropy of RPC-Attention."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from attnaudit.attention.diagnosis import diagnose, observing
from attnaudit.attention.functional import AttentionPass
from attnaudit.errors import UsageError

#: The range of log t that is searched; outside it attention is one-hot or uniform.
_RANGE = (math.log(1e-4), math.log(1e4))
_HALVINGS = 40


def scale_at(temperature: float, head_dim: int) -> float | None:
    """The factor 1/(t√d) of the scores; None, which SDPA reads as 1/√d, for t = 1."""
    if not 0 < temperature < math.inf:
        raise UsageError(f"temperature must be positive and finite, got {temperature}.")
    return None if temperature == 1 else 1 / (temperature * math.sqrt(head_dim))


@torch.no_grad()
def matching_temperatures(model: nn.Module, batches: Iterable[Tensor]) -> dict[str, float]:
    """For each RPC-Attention layer of a model, by name: the t at which symmetric attention is equally sharp.

    At this t, softmax(KKᵀ/(t√d)) of the layer's keys has the mean entropy of the layer's last attention pass, which
    determines its output. Entropy rises with t, so t is found by bisection.

    Args:
        model: the model; it stays in its current mode.
        batches: the inputs of the model.

    Raises:
        UsageError: the model has no RPC-Attention, or its entropy is not reached at any temperature.
    """
    last: dict[str, AttentionPass] = {}
    found: dict[str, list[AttentionPass]] = {}
    with observing(model, last.__setitem__):
        for batch in batches:
            model(batch)
            for name, step in last.items():
                if step.sparse is not None:
                    found.setdefault(name, []).append(step)
    if not found:
        raise UsageError(f"{type(model).__name__} has no RPC-Attention layer.")
    return {name: _matching(name, passes) for name, passes in found.items()}


def _matching(name: str, passes: Sequence[AttentionPass]) -> float:
    wanted = _mean_entropy(passes)
    low, high = _RANGE
    if not _entropy_at(passes, low) < wanted < _entropy_at(passes, high):
        raise UsageError(
            f"Symmetric attention on the keys of {name} does not reach entropy {wanted:.4g} at any temperature."
        )
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _entropy_at(passes, middle) < wanted else (low, middle)
    return math.exp((low + high) / 2)


def _entropy_at(passes: Sequence[AttentionPass], log_temperature: float) -> float:
    """The mean entropy of symmetric attention on the original keys of these passes."""
    keys = [(step.original, scale_at(math.exp(log_temperature), step.original.shape[-1]), step) for step in passes]
    return _mean_entropy([AttentionPass(key, key, step.mask, step.is_causal, scale, key) for key, scale, step in keys])


def _mean_entropy(passes: Sequence[AttentionPass]) -> float:
    """The mean entropy over queries, heads and inputs, in nats."""
    entropies = [diagnose(step).entropy for step in passes]
    return sum(float(entropy.sum()) for entropy in entropies) / sum(entropy.numel() for entropy in entropies)
