"""The leading eigenpairs of a symmetric positive semidefinite operator, from products with it alone.

Block Krylov with thick restart: from an orthonormal block X the space [X, KX, …, K^depth X] is built with full
orthogonalisation, the Rayleigh-Ritz pairs of it are exact for that space, and the best of them start the next cycle
(Golub & Underwood 1977; Musco & Musco 2015 for the start from a random block wider than the rank). Everything is in
float64: the spectra of attention kernels fall by seven orders of magnitude within the first 64, which float32 loses.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import Square
from attnaudit.kernel.implicit import ImplicitKernel

Columns = Float[Tensor, "heads tokens columns"]

#: Powers of K in a cycle, cycles at most, and how many of them may pass without a smaller residual.
DEPTH, CYCLES, PATIENCE = 3, 40, 4


@dataclass(frozen=True)
class Ritz:
    """Approximate eigenpairs, largest first, more than were asked for; `residual` is that of those asked for.

    `residual` is max_m ‖Kx_m - θ_m x_m‖ / θ_m; an eigenvalue is then off by at most that share of itself, and in
    practice by its square.
    """

    values: Float[Tensor, "heads columns"]
    vectors: Columns
    residual: Float[Tensor, "heads"]
    products: int


def leading_eigenpairs(
    operator: Square | ImplicitKernel, like: Columns, rank: int, *, tolerance: float = 1e-8, seed: int = 0
) -> Ritz:
    """At least `rank` leading eigenpairs; `like` has the shape (heads, tokens, any), dtype and device of the problem.

    Stops when the residual is below `tolerance`, stops falling, or after `CYCLES` cycles: the caller decides what to do
    with what it says.
    """
    heads, tokens = like.shape[:2]
    width = min(tokens, rank + max(16, rank // 2))
    depth = min(DEPTH, tokens // width - 1)
    generator = torch.Generator("cpu").manual_seed(seed)
    start = torch.randn(tokens, width, generator=generator, dtype=torch.float64).to(like.device).expand(heads, -1, -1)
    vectors = _orthonormal(start)
    images = operator @ vectors
    products, best, unchanged = 1, torch.inf, 0
    for _ in range(CYCLES):
        basis, mapped = [vectors], [images]
        for _ in range(depth):
            fresh = _orthonormal(_outside(mapped[-1], basis))
            basis.append(fresh)
            mapped.append(operator @ fresh)
            products += 1
        space, mapped_space = torch.cat(basis, dim=-1), torch.cat(mapped, dim=-1)
        del basis, mapped, vectors, images  # half of all memory
        small = space.mT @ mapped_space
        values, rotation = torch.linalg.eigh((small + small.mT) / 2)
        values, rotation = values.flip(-1)[:, :width], rotation.flip(-1)[:, :, :width]
        vectors, images = space @ rotation, mapped_space @ rotation
        error = images[..., :rank] - vectors[..., :rank] * values[:, None, :rank]
        floor = values[:, :1] * tokens * torch.finfo(torch.float64).eps
        residual = (torch.linalg.vector_norm(error, dim=1) / values[:, :rank].clamp_min(floor)).amax(dim=-1)
        worst = residual.amax().item()
        unchanged = 0 if worst < best else unchanged + 1
        best = min(best, worst)
        if worst <= tolerance or unchanged == PATIENCE or depth < 1:
            break
    return Ritz(values, vectors, residual, products)


def _outside(columns: Columns, basis: list[Columns]) -> Columns:
    """What the basis does not span; taken out twice, because once leaves rounding of the size of what was there."""
    for _ in range(2):
        for block in basis:
            columns = columns - block @ (block.mT @ columns)
    return columns


def _orthonormal(columns: Columns) -> Columns:
    basis: Tensor = torch.linalg.qr(columns)[0]
    return basis
