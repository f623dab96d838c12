"""The temperature of an attention, and the one at which plain symmetric attention is as sharp as RPC-Attention."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from attnaudit.attention.diagnosis import diagnose, observing
from attnaudit.attention.functional import Pass
from attnaudit.errors import UsageError

#: Between these, in log t, an entropy is looked for: outside, attention is one-hot or even.
_RANGE = (math.log(1e-4), math.log(1e4))
_HALVINGS = 40


def scale_at(temperature: float, head_dim: int) -> float | None:
    """The factor 1/(t√d) of the scores; None, which SDPA reads as 1/√d, for t = 1."""
    if not 0 < temperature < math.inf:
        raise UsageError(f"The temperature of an attention is a positive number, not {temperature}.")
    return None if temperature == 1 else 1 / (temperature * math.sqrt(head_dim))


@torch.no_grad()
def matching_temperatures(model: nn.Module, batches: Iterable[Tensor]) -> dict[str, float]:
    """Of each RPC-Attention layer of a trained model, by name: the t of symmetric attention that is as sharp.

    At this t softmax(KKᵀ/(t√d)) of the layer's own keys has the mean entropy of the attention that makes the layer's
    output, the last of its passes. Entropy rises with t, so t is found by bisection.

    Args:
        model: the model; its mode is left as it is.
        batches: what it is called with.

    Raises:
        UsageError: it has no such layer, or one whose attention is even or one-hot, as at no temperature.
    """
    last: dict[str, Pass] = {}
    found: dict[str, list[Pass]] = {}
    with observing(model, last.__setitem__):
        for batch in batches:
            model(batch)
            for name, seen in last.items():
                if seen.sparse is not None:
                    found.setdefault(name, []).append(seen)
    if not found:
        raise UsageError(f"{type(model).__name__} has no RPC-Attention whose entropy could be matched.")
    return {name: _matching(name, passes) for name, passes in found.items()}


def _matching(name: str, passes: Sequence[Pass]) -> float:
    wanted = _mean_entropy(passes)
    low, high = _RANGE
    if not _entropy_at(passes, low) < wanted < _entropy_at(passes, high):
        raise UsageError(f"Symmetric attention on the keys of {name} has an entropy of {wanted:.4g} at no temperature.")
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _entropy_at(passes, middle) < wanted else (low, middle)
    return math.exp((low + high) / 2)


def _entropy_at(passes: Sequence[Pass], log_temperature: float) -> float:
    """Of plain symmetric attention on the keys that these passes began with."""
    keys = [(seen.original, scale_at(math.exp(log_temperature), seen.original.shape[-1]), seen) for seen in passes]
    return _mean_entropy([Pass(key, key, seen.mask, seen.is_causal, scale, key) for key, scale, seen in keys])


def _mean_entropy(passes: Sequence[Pass]) -> float:
    """Over queries, heads and inputs, in nats."""
    entropies = [diagnose(seen).entropy for seen in passes]
    return sum(float(entropy.sum()) for entropy in entropies) / sum(entropy.numel() for entropy in entropies)
