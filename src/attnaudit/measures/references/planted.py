"""Values for which the theory is exactly true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.measures.references.base import (
    PrimalReferenceInput,
    Reference,
    ReferenceInput,
    Role,
    generator_for,
    streams,
)
from attnaudit.numerics.randomness import drawn


def values(given: ReferenceInput, noise: float = 0.0) -> Tensor:
    """(1-ε)·V̇·P·diag(±1) + ε·noise: the prediction in random order with random signs, noise scaled by column."""
    prediction = given.prediction
    exact = prediction.values.double() * torch.exp(prediction.log_scale.double())[:, None, None]
    count, tokens, columns = exact.shape
    order, signs = np.empty((count, columns), dtype=np.int64), np.empty((count, columns))
    disturbance = np.empty((count, tokens, columns) if noise else 0)

    def draw(place: int, generator: np.random.Generator) -> None:
        order[place] = generator.permutation(columns)
        signs[place] = 2 * generator.integers(0, 2, columns) - 1
        if noise:
            generator.standard_normal(out=disturbance[place])

    drawn(streams(given.heads.index, given.seed, given.repeat, "planted"), draw, threads=bool(noise) and exact.is_cuda)
    places = torch.from_numpy(order).to(exact.device)[:, None].expand(exact.shape)
    arranged = exact.gather(2, places) * torch.from_numpy(signs).to(exact)[:, None]
    if not noise:
        return arranged
    other = torch.from_numpy(disturbance).to(exact)
    scale = torch.linalg.vector_norm(arranged, dim=1) / torch.linalg.vector_norm(other, dim=1)
    found: Tensor = (1 - noise) * arranged + noise * other * scale[:, None]
    return found


def weights(given: PrimalReferenceInput) -> PrimalHeads | None:
    """The stationary point of J that K = U S Vᵀ gives, E = U_s and R = V_s, in random order with random signs.

    W_e = F Φ_kᵀ V_s / S_s, W_r = F Φ_qᵀ U_s / S_s and Λ = N/S_s (see `measures.ksvd`); not finite for a head whose
    kernel has fewer than s singular values, None if no head can have that many.
    """
    heads, kernel, count = given.heads, given.kernel, given.heads.dim
    if kernel.values.shape[1] < count:
        return None
    draws = [generator_for(entry, given.seed, given.repeat, "planted") for entry in heads.index]
    order = torch.stack([torch.from_numpy(draw.permutation(count)) for draw in draws]).to(kernel.rank)
    signs = torch.stack([torch.from_numpy(draw.choice([-1.0, 1.0], count)) for draw in draws]).to(heads.singular)
    sizes = kernel.values.gather(1, order).where((kernel.rank >= count)[:, None], torch.nan)
    left, right = (
        vectors.gather(2, order[:, None].expand(-1, vectors.shape[1], -1)) * (signs / sizes)[:, None]
        for vectors in (kernel.left, kernel.right)
    )
    return replace(
        heads,
        weight_e=heads.rows @ (kernel.key_factor.mT @ right),
        weight_r=heads.rows @ (kernel.query_factor.mT @ left),
        singular=heads.tokens / sizes,
    )


PLANTED = Reference(
    "planted",
    "the predicted values (Primal-Attention: the kernel SVD) in random order with random signs",
    Role.IDEAL,
    values,
    weights,
)
#: The share of noise in planted values, repeat by repeat of `PLANTED_WITH_NOISE`.
NOISES = (0.001, 0.01, 0.05, 0.2, 0.5)
PLANTED_WITH_NOISE = Reference(
    "planted_with_noise",
    f"planted values with a share of noise, {', '.join(f'{noise:.1%}' for noise in NOISES)}, on a sample of inputs",
    Role.SENSITIVITY,
    fitted=True,
)
