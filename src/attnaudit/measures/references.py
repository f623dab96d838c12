"""Heads whose right answer is known: without them no measure says anything.

A *negative* reference breaks the link between keys and values, a *positive* one plants values that satisfy the theory
exactly, up to the order and signs it leaves free. All keep the queries and keys, so the spectrum of the keys is shared
and a reference costs only its measures. (`untrained`, the same architecture with random weights, is the exception: it
is captured from a network of its own.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.errors import UsageError
from attnaudit.kernel.prediction import Prediction
from attnaudit.numerics.randomness import numpy_generator
from attnaudit.records.head_id import HeadId

UNTRAINED = "untrained"


@dataclass(frozen=True)
class Situation:
    """What a reference may use: the heads, the prediction it could plant, another layer, and a seed."""

    heads: Heads
    prediction: Prediction
    other_layer: Heads | None
    seed: int
    repeat: int = 0


@dataclass(frozen=True)
class Reference:
    """`values` makes the values of every head, or None where the reference does not apply to these heads."""

    name: str
    text: str
    positive: bool
    values: Callable[[Situation], Tensor | None]
    random: bool = True

    def apply(self, situation: Situation) -> Heads | None:
        """Heads with other values, and the outputs these values would have given."""
        values = self.values(situation)
        if values is None:
            return None
        changed = replace(situation.heads, value=values.double())
        if changed.bias is None:
            return replace(changed, output=changed.attended(changed.value))
        return replace(changed, output=changed.to(torch.float64).replayed())


def gaussian(situation: Situation) -> Tensor:
    """V ~ N(0, 1), independent of the keys."""
    heads = situation.heads
    return torch.stack([_normal(i, situation, heads.value.shape[1:]) for i in heads.index]).to(heads.value.device)


def shuffled_tokens(situation: Situation) -> Tensor:
    """Each head's own values, handed to other tokens."""
    value = situation.heads.value
    orders = [
        torch.from_numpy(generator_for(i, situation.seed, situation.repeat, "shuffle").permutation(value.shape[1]))
        for i in situation.heads.index
    ]
    return value.gather(1, torch.stack(orders).to(value.device)[:, :, None].expand_as(value))


def other_head(situation: Situation) -> Tensor | None:
    """The values of the next head of the same layer and input, cyclically; of another layer where there is one head."""
    heads = situation.heads
    groups: dict[HeadId, list[int]] = {}
    for place, entry in enumerate(heads.index):
        groups.setdefault(entry._replace(head=0), []).append(place)
    if all(len(places) > 1 for places in groups.values()):
        following = {p: places[(k + 1) % len(places)] for places in groups.values() for k, p in enumerate(places)}
        return heads.value[[following[place] for place in range(len(heads))]]
    other = situation.other_layer
    if other is None or other.value.shape != heads.value.shape:
        return None
    return other.value


def planted(situation: Situation, noise: float = 0.0) -> Tensor:
    """(1-ε)·V̇·P·diag(±1) + ε·noise: the prediction in random order with random signs, noise scaled by column."""
    prediction = situation.prediction
    exact = prediction.values.double() * torch.exp(prediction.log_scale.double())[:, None, None]
    rows = []
    for values, entry in zip(exact, situation.heads.index, strict=True):
        generator = generator_for(entry, situation.seed, situation.repeat, "planted")
        order = torch.from_numpy(generator.permutation(values.shape[1]))
        signs = torch.from_numpy(generator.choice([-1.0, 1.0], values.shape[1]))
        arranged = values[:, order] * signs.to(values)
        if noise:
            disturbance = torch.from_numpy(generator.standard_normal(values.shape)).to(values)
            scale = torch.linalg.vector_norm(arranged, dim=0) / torch.linalg.vector_norm(disturbance, dim=0)
            arranged = (1 - noise) * arranged + noise * disturbance * scale
        rows.append(arranged)
    return torch.stack(rows)


def generator_for(entry: HeadId, seed: int, repeat: int, purpose: str) -> np.random.Generator:
    """A stream of its own for every head, repeat and purpose, whatever batch the head is in."""
    name = f"{seed}/{repeat}/{purpose}/{entry.input}/{entry.layer}/{entry.head}/{entry.window}"
    return numpy_generator(name)


def _normal(entry: HeadId, situation: Situation, shape: torch.Size) -> Tensor:
    generator = generator_for(entry, situation.seed, situation.repeat, "gaussian")
    return torch.from_numpy(generator.standard_normal(tuple(shape)))


REFERENCES: Mapping[str, Reference] = {
    reference.name: reference
    for reference in (
        Reference("gaussian", "values drawn from N(0, 1)", False, gaussian),
        Reference("shuffled_tokens", "the head's values handed to other tokens", False, shuffled_tokens),
        Reference(
            "other_head", "the values of another head of the same layer and input", False, other_head, random=False
        ),
        Reference("planted", "the predicted values in random order with random signs", True, planted),
    )
}

#: Every reference name, including the one that needs a network of its own.
ALL_REFERENCES = (*REFERENCES, UNTRAINED)
POSITIVE_REFERENCES = tuple(name for name, reference in REFERENCES.items() if reference.positive)
NEGATIVE_REFERENCES = tuple(name for name in ALL_REFERENCES if name not in POSITIVE_REFERENCES)


def check_references(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, or `UsageError` if one is unknown."""
    for name in names:
        if name not in ALL_REFERENCES:
            raise UsageError(f"There is no reference {name!r}; there are {', '.join(ALL_REFERENCES)}.")
    return names
