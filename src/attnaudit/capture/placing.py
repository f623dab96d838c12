"""Say which input, window and head each unit of an attention call is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from attnaudit.capture.attention_call import AttentionCall, Places


@dataclass(frozen=True)
class Placing:
    """The input, window and head of units, sorted by them; `order` sorts the units of the call so.

    `key_heads` numbers the keys and values of every unit, the same for heads that share both; None if that is not
    known.
    """

    sample: Int[Tensor, "units"]
    window: Int[Tensor, "units"]
    head: Int[Tensor, "units"]
    order: Int[Tensor, "units"]
    heads: int
    key_heads: Int[Tensor, "units"] | None

    @property
    def key_head_count(self) -> int:
        """The number of heads that differ in their keys or values."""
        return self.heads if self.key_heads is None else int(self.key_heads.max()) + 1

    @property
    def windows(self) -> int:
        """The number of windows of an input."""
        return int(self.window.max()) + 1

    def thinned(self, kept: int) -> Placing:
        """With so many windows of each input, numbered anew: the middle one of each of that many equal parts."""
        if kept >= self.windows:
            return self
        chosen = (2 * torch.arange(kept) + 1) * self.windows // (2 * kept)
        number = torch.full((self.windows,), -1).index_copy(0, chosen, torch.arange(kept))[self.window]
        stays = number >= 0
        shared = None if self.key_heads is None else self.key_heads[stays]
        return Placing(self.sample[stays], number[stays], self.head[stays], self.order[stays], self.heads, shared)


def placing(call: AttentionCall, inputs: int) -> Placing | None:
    """From labels where they are known, else from the order of the units; None if they do not split into inputs."""
    units = len(call.query)
    sample = _samples(call.places, units, inputs)
    if sample is None:
        return None
    head = _heads(call.places)
    if head is None or not _even(sample, head):
        head = _by_order(call.places, units, len(torch.unique(sample)))
        if head is None:
            return None
    heads = int(head.max()) + 1
    order = torch.argsort(sample * heads + head, stable=True)
    window = torch.empty_like(order)
    windows = units // (len(torch.unique(sample)) * heads)
    window[order] = torch.arange(units) % windows
    order = torch.argsort((sample * windows + window) * heads + head, stable=True)
    shared = _key_heads(call.places, head, heads)
    return Placing(sample[order], window[order], head[order], order, heads, None if shared is None else shared[order])


def _samples(places: Places, units: int, inputs: int) -> Tensor | None:
    sample = places.sample
    if sample is not None and int(sample.min()) >= 0 and int(sample.max()) < inputs:
        return sample
    return torch.arange(units) * inputs // units if units and units % inputs == 0 else None


def _heads(places: Places) -> Tensor | None:
    """Units of other columns of a projection are other heads."""
    known = [label for label in (places.query, places.key, places.value) if label is not None]
    if not known:
        return None
    head: Tensor = torch.unique(torch.stack(known), dim=1, return_inverse=True)[1]
    return head


def _key_heads(places: Places, head: Tensor, heads: int) -> Tensor | None:
    """Which key head each unit has, in the order of heads; None if a head has not always the same one."""
    if places.key is None:
        return None
    labels = torch.stack([places.key] if places.value is None else [places.key, places.value])
    number: Tensor = torch.unique(labels, dim=1, return_inverse=True)[1]
    first = torch.stack([number[head == own][0] for own in range(heads)])
    if not torch.equal(first[head], number):
        return None
    ranks = {int(own): rank for rank, own in enumerate(dict.fromkeys(first.tolist()))}
    return torch.tensor([ranks[int(own)] for own in number])


def _even(sample: Tensor, head: Tensor) -> bool:
    """Whether every input has every head equally often."""
    heads = int(head.max()) + 1
    pairs, counts = torch.unique(sample * heads + head, return_counts=True)
    return bool((counts == counts[0]).all()) and len(pairs) == len(torch.unique(sample)) * heads


def _by_order(places: Places, units: int, inputs: int) -> Tensor | None:
    """The last axis before queries and keys is that of heads; without one, all units of an input are heads."""
    heads = places.heads or units // inputs
    return torch.arange(units) % heads if heads and units % (heads * inputs) == 0 else None
