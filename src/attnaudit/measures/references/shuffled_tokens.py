"""The head's own values, given to other tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from attnaudit.measures.references.base import Reference, ReferenceInput, Role, generator_for


def values(given: ReferenceInput) -> Tensor:
    """Each head's own values in a random order of tokens."""
    value = given.heads.value
    orders = [
        torch.from_numpy(generator_for(entry, given.seed, given.repeat, "shuffle").permutation(value.shape[1]))
        for entry in given.heads.index
    ]
    return value.gather(1, torch.stack(orders).to(value.device)[:, :, None].expand_as(value))


SHUFFLED_TOKENS = Reference("shuffled_tokens", "the head's values given to other tokens", Role.CONTEXT, values)
