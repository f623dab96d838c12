"""The head's values in another direction of token space."""

from __future__ import annotations

import torch
from torch import Tensor

from attnaudit.measures.references.base import Reference, ReferenceInput, Role, generator_for


def values(given: ReferenceInput) -> Tensor:
    """V = 1mᵀ + USRᵀ becomes 1mᵀ + (QU)SRᵀ with Q a random rotation of token space that keeps 1.

    QU is as likely as any other orthonormal columns that are orthogonal to 1, so it is drawn as such. Mean and singular
    values stay, and so do all products of columns; what the values have to do with the keys is lost.
    """
    value = given.heads.value.double()
    mean = value.mean(dim=1, keepdim=True)
    rank = min(value.shape[1] - 1, value.shape[2])
    _, sizes, right = torch.linalg.svd(value - mean, full_matrices=False)
    draws = [generator_for(entry, given.seed, given.repeat, "rotated") for entry in given.heads.index]
    noise = torch.stack([torch.from_numpy(draw.standard_normal((value.shape[1], rank))) for draw in draws]).to(value)
    turned: Tensor = torch.linalg.qr(noise - noise.mean(dim=1, keepdim=True))[0]
    found: Tensor = mean + turned @ (sizes[:, :rank, None] * right[:, :rank])
    return found


ROTATED = Reference("rotated", "the head's values, turned at random in token space", Role.NULL, values)
