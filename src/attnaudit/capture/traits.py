"""What kind of attention a layer has: which keys its queries see, and what is shared or added."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.capture.tracing.labels import narrowed
from attnaudit.display import counted
from attnaudit.numerics.masks import later_keys, visible


@dataclass(frozen=True)
class Traits:
    """Properties of a captured layer.

    `window` is the number of keys that a query sees at most, if that is a band around its own place; `rotary` says that
    keys are captured after their rotation; `padding` that tokens which no query sees were left out; `left_out` is the
    number of windows of an input that were not kept, as the layer asks.
    """

    causal: bool = False
    window: int | None = None
    sinks: bool = False
    softcap: float | None = None
    heads: int = 1
    key_heads: int = 1
    rotary: bool = False
    padding: bool = False
    left_out: int = 0

    def __str__(self) -> str:
        parts = [
            "causal" if self.causal else "",
            "" if self.window is None else f"window of {self.window}",
            "sinks" if self.sinks else "",
            "" if self.softcap is None else f"softcap {self.softcap:g}",
            f"{counted(self.key_heads, 'key head')} for {self.heads} heads" if self.key_heads < self.heads else "",
            "rotary" if self.rotary else "",
            "padding left out" if self.padding else "",
            f"{counted(self.left_out, 'window')} left out" if self.left_out else "",
        ]
        return ", ".join(part for part in parts if part)


def traits_of(heads: Heads, key_heads: int, rotary: bool, padding: bool, left_out: int = 0) -> Traits:
    """The properties of heads of one layer, of which `key_heads` differ in their keys."""
    seen = None if heads.bias is None else visible(narrowed(heads.bias, [0]))
    causal, window = (False, None) if seen is None or seen.shape[1] != seen.shape[2] else _band(seen)
    count = len({entry.head for entry in heads.index})
    return Traits(causal, window, heads.sink is not None, heads.softcap, count, key_heads, rotary, padding, left_out)


def _band(seen: Bool[Tensor, "heads tokens tokens"]) -> tuple[bool, int | None]:
    """Whether no query sees a later key, and the width of the band if that is what all of them see."""
    tokens = seen.shape[1]
    later = later_keys(tokens, tokens, seen.device)
    causal = tokens > 1 and not bool((seen & later).any())
    place = torch.arange(tokens, device=seen.device)
    distance = place[:, None] - place[None, :]
    reach = int(distance[seen.any(dim=0)].max()) if bool(seen.any()) else 0
    band = (distance <= reach) & ((distance >= 0) if causal else (distance >= -reach))
    width = reach + 1 if causal else 2 * reach + 1
    return causal, width if reach + 1 < tokens and bool((seen == band).all()) else None
