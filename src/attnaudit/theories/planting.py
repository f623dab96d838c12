"""Random weights for planted heads: one draw per head of a network, the same for all its inputs."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.numerics.randomness import numpy_generator


def weights_of_heads(heads: Heads, shape: tuple[int, ...], stream: str) -> Float[Tensor, "heads ..."]:
    """N(0, 1), by layer and head."""
    names = [(entry.layer, entry.head) for entry in heads.index]
    drawn = {
        name: torch.from_numpy(numpy_generator(f"{stream}/{name[0]}/{name[1]}").standard_normal(shape))
        for name in dict.fromkeys(names)
    }
    return torch.stack([drawn[name] for name in names]).to(heads.key.device)


def noise_of_heads(heads: Heads, shape: tuple[int, ...], stream: str) -> Float[Tensor, "heads ..."]:
    """N(0, 1), another draw for every input."""
    drawn = [
        numpy_generator(f"{stream}/{entry.input}/{entry.layer}/{entry.head}/{entry.window}").standard_normal(shape)
        for entry in heads.index
    ]
    return torch.stack([torch.from_numpy(own) for own in drawn]).to(heads.key.device)


def same_size(
    values: Float[Tensor, "heads tokens dim"], like: Float[Tensor, "heads tokens dim"]
) -> Float[Tensor, "heads tokens dim"]:
    """Values scaled to the Frobenius norm of others."""
    sizes: Tensor = torch.linalg.matrix_norm(like.double(), keepdim=True)
    found: Tensor = values * (sizes / torch.linalg.matrix_norm(values, keepdim=True))
    return found
