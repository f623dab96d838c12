"""Kernel PCA of a head's keys in any gauge.

A network determines its keys up to k → M⁻¹k + c, which its queries can undo. So of a head's kernel only the family

    exp((k + c)ᵀS(k' + c)),    S = LLᵀ ≻ 0,

is left: the usual kernel of gauged keys (k + c)L. With x = k - k₀ for some origin k₀, w = S(c + k₀), and
h_i = log Σ_j exp(x_iᵀSx_j + wᵀx_j), leaving out constants,

    log K_φ,ij = x_iᵀSx_j - h_i - h_j,        log g_i = wᵀx_i + h_i.

These exist for S → 0 too. There, with w = 0, the leading eigenvectors span the centred keys and all g_i are equal: in
this *linear limit* kernel PCA is PCA. So a gauge is held as k₀, L and w. Centring removes constants, so the kernel
minus 1 serves as well as the kernel, and it keeps its digits however small S is.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnaudit.kernel.gram import PerToken, Square, centred
from attnaudit.kernel.solvers import eigenpairs, orthonormal_basis

#: Keys of several inputs with the same number of tokens, and bases of d columns over these tokens.
InputKeys = Float[Tensor, "heads inputs tokens dim"]
InputBases = Float[Tensor, "heads inputs tokens columns"]
#: The largest exponent xᵀSx' in what stands for the linear limit.
_LINEAR = 1e-8


@dataclass(frozen=True)
class Gauge:
    """k₀, L and w of every head."""

    origin: Float[Tensor, "heads dim"]
    factor: Float[Tensor, "heads dim rank"]
    tilt: Float[Tensor, "heads dim"]

    @staticmethod
    def of(factor: Float[Tensor, "heads dim rank"], shift: Float[Tensor, "heads dim"]) -> Gauge:
        """From L and c."""
        return Gauge(-shift, factor, torch.zeros_like(shift))

    @staticmethod
    def linear_limit(origin: Float[Tensor, "heads dim"], factor: Float[Tensor, "heads dim rank"]) -> Gauge:
        """L times a small number; it must be such that the gauged keys xL have a length of about 1."""
        return Gauge(origin, factor * _LINEAR**0.5, torch.zeros_like(origin))

    def where(self, mask: Bool[Tensor, "heads"], other: Gauge) -> Gauge:
        """This gauge for heads in the mask, the other for the rest."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Gauge(*(torch.where(mask.reshape(-1, *[1] * (a.dim() - 1)), a, b) for a, b in pairs))

    def kernel(
        self, keys: InputKeys
    ) -> tuple[Float[Tensor, "heads inputs tokens tokens"], Float[Tensor, "heads inputs tokens"]]:
        """exp(log K_φ - max) - 1, and log g up to a constant."""
        x = keys - self.origin[:, None, None]
        gauged, tilted = x @ self.factor[:, None], (x @ self.tilt[:, None, :, None])[..., 0]
        scores = gauged @ gauged.mT
        mass = torch.logsumexp(scores + tilted[..., None, :], dim=-1)
        logs = scores - mass[..., :, None] - mass[..., None, :]
        return torch.expm1(logs - logs.detach().amax(dim=(-2, -1), keepdim=True)), tilted + mass


def gauge_spans(gauge: Gauge, keys: InputKeys, columns: int) -> InputBases:
    """Orthonormal bases of the values V̇ = G(I - 1_N)A that kernel PCA predicts in this gauge."""
    matrix, log_mass = gauge.kernel(keys)
    found = _Predicted.of(matrix.flatten(0, 1), log_mass.flatten(0, 1), columns).basis
    return found.reshape(*keys.shape[:3], columns)


def gauge_overlaps(gauge: Gauge, keys: InputKeys, values: InputBases) -> Float[Tensor, "heads inputs"]:
    """Σσ²/d of the span of V, given by orthonormal bases, and of V̇ in this gauge; it can be differentiated."""
    matrix, log_mass = gauge.kernel(keys)
    flat = (matrix.flatten(0, 1), log_mass.flatten(0, 1), values.flatten(0, 1))
    found: Tensor = _Overlap.apply(*flat)  # type: ignore[no-untyped-call, unused-ignore]
    return found.reshape(values.shape[:2])


@dataclass(frozen=True)
class _Predicted:
    """V̇ = GA with an orthonormal basis, and all eigenpairs of the centred matrix, ascending."""

    sizes: PerToken
    vectors: Square
    weights: Float[Tensor, "heads tokens 1"]
    values: Float[Tensor, "heads tokens columns"]
    basis: Float[Tensor, "heads tokens columns"]

    @staticmethod
    def of(matrix: Square, log_mass: PerToken, columns: int) -> _Predicted:
        sizes, vectors = eigenpairs(centred(matrix))
        weights = torch.exp(log_mass.amin(dim=-1, keepdim=True) - log_mass)[..., None]
        values = vectors[..., -columns:] * weights
        lengths: Tensor = torch.linalg.vector_norm(values, dim=1, keepdim=True)
        return _Predicted(sizes, vectors, weights, values, orthonormal_basis(values / lengths))


class _Overlap(torch.autograd.Function):
    """The overlap f = ‖C‖²/d, C = Q_VᵀQ, of given spans Q_V and of V̇ = GA = QR.

    Its gradient is F = ∂f/∂V̇ = (2/d)(1 - QQᵀ)Q_V C R⁻ᵀ for V̇, GF for A and -Σ_m F_im V̇_im for log g_i. Since f depends
    on the span of A alone, that of the matrix has only the cross terms Σ u_n (u_nᵀGF)_m/(λ_m - λ_n) u_mᵀ, m ≤ d < n:
    eigenvalues that are equal on the same side do no harm.
    """

    @staticmethod
    def forward(ctx: Any, matrix: Square, log_mass: PerToken, given: Float[Tensor, "heads tokens columns"]) -> Tensor:
        found = _Predicted.of(matrix, log_mass, given.shape[-1])
        cosines = given.mT @ found.basis
        ctx.found, ctx.given, ctx.cosines = found, given, cosines
        return cosines.square().sum(dim=(-2, -1)) / given.shape[-1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        found, given, cosines = ctx.found, ctx.given, ctx.cosines
        columns = given.shape[-1]
        rest = given @ cosines - found.basis @ (cosines.mT @ cosines)
        # Without checks: a singular matrix gives a gradient that is not finite, which an ascent sees and avoids.
        slope = torch.linalg.solve_ex(found.basis.mT @ found.values, rest.mT)[0].mT
        slope = slope * (2 / columns * grad[:, None, None])
        leading, others = found.vectors[..., -columns:], found.vectors[..., :-columns]
        gaps = found.sizes[:, None, -columns:] - found.sizes[:, :-columns, None]
        cross = others @ ((others.mT @ (found.weights * slope)) / gaps) @ leading.mT
        return centred((cross + cross.mT) / 2), -(slope * found.values).sum(dim=-1), None
