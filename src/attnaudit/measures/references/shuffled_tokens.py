"""The head's own values, given to other tokens."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attnaudit.measures.references.base import Reference, ReferenceInput, Role, streams
from attnaudit.numerics.randomness import drawn


def values(given: ReferenceInput) -> Tensor:
    """Each head's own values in a random order of tokens."""
    value = given.heads.value
    orders = np.empty(value.shape[:2], dtype=np.int64)

    def draw(place: int, generator: np.random.Generator) -> None:
        orders[place] = generator.permutation(value.shape[1])

    drawn(streams(given.heads.index, given.seed, given.repeat, "shuffle"), draw, threads=False)
    return value.gather(1, torch.from_numpy(orders).to(value.device)[:, :, None].expand_as(value))


SHUFFLED_TOKENS = Reference(
    "shuffled_tokens", "the head's values given to other tokens", Role.CONTEXT, values, uses_prediction=False
)
