"""The leading eigenpairs of a symmetric positive semidefinite operator, using only products with it.

Block Krylov with thick restart: from an orthonormal block X the space [X, KX, …, K^depth X] is built with full
orthogonalisation; its best Rayleigh-Ritz pairs start the next cycle (Golub & Underwood 1977; Musco & Musco 2015 for
starting from a random block wider than the rank). Everything is in float64: the first 64 eigenvalues of attention
kernels fall by seven orders of magnitude, more than float32 resolves.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import Square
from attnaudit.kernel.implicit import ImplicitKernel

Columns = Float[Tensor, "heads tokens columns"]

#: Powers of K in a cycle, the maximum number of cycles, and how many may pass without a smaller residual.
DEPTH, CYCLES, PATIENCE = 3, 40, 4


@dataclass(frozen=True)
class Ritz:
    """Approximate eigenpairs, largest first; there are more than requested, and `residual` covers the requested ones.

    `residual` is max_m ‖Kx_m - θ_m x_m‖ / θ_m: the relative error of an eigenvalue is at most that, and in practice
    its square.
    """

    values: Float[Tensor, "heads columns"]
    vectors: Columns
    residual: Float[Tensor, "heads"]


def leading_eigenpairs(
    operator: Square | ImplicitKernel, like: Columns, rank: int, *, tolerance: float = 1e-8, seed: int = 0
) -> Ritz:
    """At least `rank` leading eigenpairs; `like` gives the shape (heads, tokens, any) and the device.

    The operator must be scaled so that its largest entry is about 1: eigenvalues below the rounding error of 1 count as
    zero. The iteration stops when the residual of every head is below `tolerance` or no longer falls; the caller
    decides whether a residual is small enough.
    """
    heads, tokens = like.shape[:2]
    width = min(tokens, rank + max(16, rank // 2))
    width = tokens if tokens < 2 * width else width  # the whole space, if a Krylov space does not fit
    depth = min(DEPTH, tokens // width - 1)
    generator = torch.Generator("cpu").manual_seed(seed)
    start = torch.randn(tokens, width, generator=generator, dtype=torch.float64).to(like.device).expand(heads, -1, -1)
    vectors = _orthonormal(start)
    images = operator @ vectors
    rounding = tokens * torch.finfo(torch.float64).eps
    best = torch.full((heads,), torch.inf, dtype=torch.float64, device=like.device)
    unchanged = torch.zeros(heads, dtype=torch.long, device=like.device)
    for _ in range(CYCLES):
        basis, mapped = [vectors], [images]
        for _ in range(depth):
            fresh = _orthonormal_to(basis, mapped[-1])
            basis.append(fresh)
            mapped.append(operator @ fresh)
        space, mapped_space = torch.cat(basis, dim=-1), torch.cat(mapped, dim=-1)
        del basis, mapped, vectors, images  # half of all memory
        small = space.mT @ mapped_space
        values, rotation = torch.linalg.eigh((small + small.mT) / 2)
        values, rotation = values.flip(-1)[:, :width], rotation.flip(-1)[:, :, :width]
        vectors, images = space @ rotation, mapped_space @ rotation
        error = torch.linalg.vector_norm(images[..., :rank] - vectors[..., :rank] * values[:, None, :rank], dim=1)
        floor = rounding * values[:, :1].clamp_min(1)
        residual = (error / torch.maximum(values[:, :rank], floor)).amax(dim=-1)
        unchanged = torch.where(residual < best, 0, unchanged + 1)
        best = torch.minimum(best, residual)
        empty = values[:, 0] <= floor[:, 0]
        if depth < 1 or ((residual <= tolerance) | (unchanged >= PATIENCE) | empty).all():
            break
    return Ritz(values, vectors, residual)


def _orthonormal_to(basis: list[Columns], columns: Columns) -> Columns:
    """An orthonormal basis of what the columns add to the basis.

    If they add nothing, only rounding error is left of them, partly inside the basis; after normalising and projecting
    once more, it is as good as any other new direction.
    """
    for _ in range(2):
        for block in basis:
            columns = columns - block @ (block.mT @ columns)
        columns = _orthonormal(columns)
    return columns


def _orthonormal(columns: Columns) -> Columns:
    basis: Tensor = torch.linalg.qr(columns)[0]
    return basis
