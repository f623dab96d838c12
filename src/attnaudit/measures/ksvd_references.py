"""Weights of Primal-Attention whose right answer is known; queries, keys and f(X), and so the kernel, stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from attnaudit.kernel.primal import PrimalHeads, PrimalKernel
from attnaudit.measures.references import generator_for


def gaussian(heads: PrimalHeads, kernel: PrimalKernel, seed: int, repeat: int) -> PrimalHeads:
    """W_e, W_r ~ N(0, 1) with the head's own Λ.

    Not Gaussian E and R: these would leave the column space of K, which no weights can, and so be easily beaten.
    """
    draws = [generator_for(entry, seed, repeat, "gaussian") for entry in heads.index]
    weight_e, weight_r = (
        torch.stack([torch.from_numpy(draw.standard_normal(weight.shape[1:])) for draw in draws]).to(weight)
        for weight in (heads.weight_e, heads.weight_r)
    )
    return replace(heads, weight_e=weight_e, weight_r=weight_r)


def planted(heads: PrimalHeads, kernel: PrimalKernel, seed: int, repeat: int) -> PrimalHeads | None:
    """The stationary point of J that K = U S Vᵀ gives, E = U_s and R = V_s, in random order with random signs.

    W_e = F Φ_kᵀ V_s / S_s, W_r = F Φ_qᵀ U_s / S_s and Λ = N/S_s (see `measures.ksvd`); not finite for a head whose
    kernel has fewer than s singular values, None where none can have that many.
    """
    count = heads.dim
    if kernel.values.shape[1] < count:
        return None
    draws = [generator_for(entry, seed, repeat, "planted") for entry in heads.index]
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


#: By the names these references have elsewhere.
PRIMAL_REFERENCES: Mapping[str, Callable[[PrimalHeads, PrimalKernel, int, int], PrimalHeads | None]] = {
    "gaussian": gaussian,
    "planted": planted,
}
