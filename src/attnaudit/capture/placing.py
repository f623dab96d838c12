"""Say which input, window and head each unit of an attention call is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from attnaudit.capture.attention_call import AttentionCall, Places
from attnaudit.capture.tracing.labels import LOST


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


#: Why units cannot be placed, where nothing tells inputs apart.
UNKNOWN = "which input its rows belong to is not known: capture one input at a time"
LOST_INPUT = "which input its heads belong to cannot be followed: capture one input at a time"
OF_NO_INPUT = (
    "no input is seen to reach it, as where a model attends over its own parameters: capture one input at a time"
)


def placing(call: AttentionCall, inputs: int) -> Placing | str:
    """From labels, which tell inputs and, where they are known, heads; or why the units cannot be placed."""
    units = len(call.query)
    sample = _samples(call, inputs)
    if sample is None:
        if call.places.sample is not None and bool((call.places.sample == LOST).any()):
            return LOST_INPUT
        return UNKNOWN if call.from_input else OF_NO_INPUT
    head = _heads(call.places)
    if head is None or not _even(sample, head):
        head = _by_order(call.places, sample)
        if head is None:
            return f"its {units} heads do not split into {inputs} inputs: capture one at a time"
    heads = int(head.max()) + 1
    order = torch.argsort(sample * heads + head, stable=True)
    window = torch.empty_like(order)
    windows = units // (len(torch.unique(sample)) * heads)
    window[order] = torch.arange(units) % windows
    order = torch.argsort((sample * windows + window) * heads + head, stable=True)
    shared = _key_heads(call.places, head, heads)
    return Placing(sample[order], window[order], head[order], order, heads, None if shared is None else shared[order])


def tells_inputs(places: Places, inputs: int) -> bool:
    """Whether labels alone tell the inputs of units."""
    sample = places.sample
    return inputs == 1 or (sample is not None and int(sample.min()) >= 0 and int(sample.max()) < inputs)


def _samples(call: AttentionCall, inputs: int) -> Tensor | None:
    """The input of every unit. Where there is no label, copies may be given to any input, and nothing else."""
    units = len(call.query)
    if tells_inputs(call.places, inputs):
        return torch.zeros(units, dtype=torch.long) if inputs == 1 else call.places.sample
    return torch.arange(units) * inputs // units if _are_copies(call, inputs) else None


def _are_copies(call: AttentionCall, inputs: int) -> bool:
    """Whether the units are the same heads for every input, as those of learned queries that attend to one another."""
    if not len(call.query) or len(call.query) % inputs:
        return False
    tensors = (call.query, call.key, call.value, call.output, call.scale, call.bias, call.sink)
    parts = (tensor.reshape(inputs, -1, *tensor.shape[1:]) for tensor in tensors if tensor is not None)
    return all(bool((part == part[:1]).all()) for part in parts)


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


def _by_order(places: Places, sample: Tensor) -> Tensor | None:
    """The last axis before queries and keys is that of heads; without one, all units of an input are heads.

    None if inputs would have other heads then.
    """
    units = torch.arange(len(sample))
    if places.heads and _even(sample, units % places.heads):
        return units % places.heads
    order = torch.argsort(sample, stable=True)
    most = len(sample) // len(torch.unique(sample))
    head = torch.empty_like(order)
    head[order] = units % most
    return head if _even(sample, head) else None
