"""Which of the expected attention was captured, refused or missed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from benchmarks.coverage.events import Event
from benchmarks.coverage.kernels import WHOLE_LAYER
from benchmarks.coverage.said import Said
from torch import Tensor

from attnaudit.capture import Heads

#: A bias below this is a mask.
MASKED = -1e4


@dataclass
class Account:
    """Numbers of attention calls; `missed` and `extra` name module, kernel and shape.

    `input_bias` and `input_mask` are captured layers whose bias, or mask, depends on the input.
    """

    expected: int = 0
    captured: int = 0
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    compared: int = 0
    difference: float = 0.0
    input_bias: list[str] = field(default_factory=list)
    input_mask: list[str] = field(default_factory=list)


def account(events: Sequence[Event], said: Said) -> Account:
    """Pair every expected call with a captured layer of its module, else with a refusal of its module."""
    result = Account(other=[_describe(event) for event in events if not event.is_attention])
    waiting: dict[str, list[Heads]] = defaultdict(list)
    for name, heads in said.captured:
        waiting[name].append(heads)
    left = [event for event in events if event.is_attention]
    result.expected = len(left)
    for must_fit in (True, False):
        left = [event for event in left if not _take(event, waiting, must_fit, result)]
    reasons = dict(reversed(said.refused))
    for event in left:
        layer = next((name for name in reasons if _about(name, event)), None)
        if layer is None:
            result.missed.append(_describe(event))
        else:
            result.refused[layer, reasons[layer]] += 1
    result.extra = [f"{name} {tuple(h.query.shape)}" for name, many in waiting.items() for h in many]
    return result


def _take(event: Event, waiting: dict[str, list[Heads]], must_fit: bool, result: Account) -> bool:
    """Take the first captured layer of its module (`must_fit`: with as many weights); False if there is none."""
    for name, captured in waiting.items():
        for heads in captured if _about(name, event) else ():
            if must_fit and event.weights is not None and _size(heads) != event.weights.numel():
                continue
            captured[:] = [other for other in captured if other is not heads]
            _note(name, heads, event, result)
            return True
    return False


def _size(heads: Heads) -> int:
    return len(heads) * heads.query.shape[1] * heads.tokens


def _note(name: str, heads: Heads, event: Event, result: Account) -> None:
    result.captured += 1
    finite, mask = bias_depends_on_input(heads)
    if finite:
        result.input_bias.append(name)
    elif mask:
        result.input_mask.append(name)
    difference = None if event.weights is None else weights_difference(heads, event.weights)
    if difference is not None:
        result.compared += 1
        result.difference = max(result.difference, difference)


def weights_difference(heads: Heads, weights: Tensor) -> float | None:
    """The largest difference between the weights of captured heads and the model's, in any order of heads.

    None if the numbers of weights differ.
    """
    direct = ordered_difference(heads, weights)
    if direct is None or direct < 1e-3:
        return direct
    mine = _weights(heads).flatten(1)
    theirs = weights.detach().double().nan_to_num().reshape(mine.shape)
    probe = torch.rand(mine.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return float((mine[(mine @ probe).argsort()] - theirs[(theirs @ probe).argsort()]).abs().max())


def ordered_difference(heads: Heads, weights: Tensor) -> float | None:
    """The same, with heads in the order of the captured ones."""
    mine = _weights(heads)
    if mine.numel() != weights.numel():
        return None
    return float((mine - weights.detach().double().nan_to_num().reshape(mine.shape)).abs().max())


def _weights(heads: Heads) -> Tensor:
    scores = heads.query.double() @ heads.key.double().mT * heads.scale.double()[:, None, None]
    return torch.softmax(scores if heads.bias is None else scores + heads.bias.double(), dim=-1).nan_to_num()


def bias_depends_on_input(heads: Heads) -> tuple[bool, bool]:
    """Whether the same head has another bias, or another mask, for another input: terms of position have not."""
    if heads.bias is None:
        return False, False
    by_place: dict[object, list[Tensor]] = defaultdict(list)
    for place, bias in zip(heads.index, heads.bias, strict=True):
        by_place[place.head, place.window].append(bias.double())
    pairs = [(biases[0], other) for biases in by_place.values() for other in biases[1:]]
    seen = [(one > MASKED) & (other > MASKED) for one, other in pairs]
    finite = any(_spread(one - other, both) > 1e-3 for (one, other), both in zip(pairs, seen, strict=True))
    return finite, any(bool(((one > MASKED) != (other > MASKED)).any()) for one, other in pairs)


def _spread(difference: Tensor, seen: Tensor) -> float:
    """How much a difference varies along the keys that are seen: a softmax does not see a constant."""
    highest = difference.masked_fill(~seen, -torch.inf).amax(-1)
    lowest = difference.masked_fill(~seen, torch.inf).amin(-1)
    return float((highest - lowest).nan_to_num(0.0, 0.0, 0.0).max())


def _describe(event: Event) -> str:
    return f"{event.places[0]}: {event.kernel} {event.shape}{', no product of activations' * event.is_pooling}"


def _about(name: str, event: Event) -> bool:
    """Whether capture means this call by the name; a kernel for a whole layer stands for the attention inside it."""
    return name in event.places or (event.kernel == WHOLE_LAYER and name.startswith(f"{event.module}."))
