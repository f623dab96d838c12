"""Which of the expected attention was captured, refused, listed as no attention, or missed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.coverage.events import Event
from benchmarks.coverage.kernels import WHOLE_LAYER
from benchmarks.coverage.said import Layer, Said
from benchmarks.coverage.weights import SAME, weights_difference


@dataclass
class Account:
    """Numbers of attention calls; `listed`, `missed` and `extra` name module, kernel and shape.

    `listed` are those that capture lists as no attention, and whose scores are no product of two activations.
    """

    expected: int = 0
    captured: int = 0
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    listed: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    compared: int = 0
    difference: float = 0.0


def account(events: Sequence[Event], said: Said) -> Account:
    """Pair every expected call with a captured layer of its module, else with what capture says of its module."""
    result = Account(other=[_describe(event) for event in events if not event.is_attention])
    waiting: dict[str, list[Layer]] = defaultdict(list)
    for name, layer in said.captured:
        waiting[name].append(layer)
    left = [event for event in events if event.is_attention]
    result.expected = len(left)
    for must_agree in (True, False):
        left = [event for event in left if not _take(event, waiting, must_agree, result)]
    reasons = dict(reversed(said.refused))
    for event in left:
        refused = next((name for name in reasons if _about(name, event)), None)
        if event.is_pooling and _is_listed(event, said):
            result.listed.append(_describe(event))
        elif refused is None:
            result.missed.append(_describe(event))
        else:
            result.refused[refused, reasons[refused]] += 1
    result.extra = [f"{name} {tuple(layer[0].query.shape)}" for name, many in waiting.items() for layer in many]
    return result


def _take(event: Event, waiting: dict[str, list[Layer]], must_agree: bool, result: Account) -> bool:
    """Take the first captured layer of its module (`must_agree`: with the same weights); False if there is none.

    A layer that attends in one window or input after the other has a part for each of these calls.
    """
    for name, captured in waiting.items():
        for place, layer in enumerate(captured if _about(name, event) else ()):
            for found in (layer, *((part,) for part in layer if len(layer) > 1)):
                difference = None if event.weights is None else weights_difference(found, event.weights)
                if must_agree and (difference is None or difference > SAME):
                    continue
                rest = tuple(part for part in layer if all(part is not own for own in found))
                captured[place : place + 1] = [rest] if rest else []
                result.captured += 1
                if difference is not None:
                    result.compared += 1
                    result.difference = max(result.difference, difference)
                return True
    return False


def _is_listed(event: Event, said: Said) -> bool:
    """Whether capture lists a softmax of this module and shape as no attention."""
    return any(_about(name, event) and str(event.shape) in what for name, what in said.listed)


def _describe(event: Event) -> str:
    return f"{event.places[0]}: {event.kernel} {event.shape}{', no product of activations' * event.is_pooling}"


def _about(name: str, event: Event) -> bool:
    """Whether capture means this call by the name; a kernel for a whole layer stands for the attention inside it."""
    return name in event.places or (event.kernel == WHOLE_LAYER and name.startswith(f"{event.module}."))
