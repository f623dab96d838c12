"""Random weights for planted heads: one draw per head of a network, the same for all its inputs."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.numerics.randomness import normal_draws


def weights_of_heads(heads: Heads, shape: tuple[int, ...], stream: str) -> Float[Tensor, "heads ..."]:
    """N(0, 1), by layer and head."""
    names = [f"{stream}/{entry.layer}/{entry.head}" for entry in heads.index]
    place_of = {name: place for place, name in enumerate(dict.fromkeys(names))}
    places = torch.tensor([place_of[name] for name in names], device=heads.key.device)
    return normal_draws(list(place_of), shape, heads.key.device)[places]


def noise_of_heads(heads: Heads, shape: tuple[int, ...], stream: str) -> Float[Tensor, "heads ..."]:
    """N(0, 1), another draw for every input."""
    names = [f"{stream}/{entry.input}/{entry.layer}/{entry.head}/{entry.window}" for entry in heads.index]
    return normal_draws(names, shape, heads.key.device)


def same_size(
    values: Float[Tensor, "heads tokens dim"], like: Float[Tensor, "heads tokens dim"]
) -> Float[Tensor, "heads tokens dim"]:
    """Values scaled to the Frobenius norm of others."""
    sizes: Tensor = torch.linalg.matrix_norm(like.double(), keepdim=True)
    found: Tensor = values * (sizes / torch.linalg.matrix_norm(values, keepdim=True))
    return found
