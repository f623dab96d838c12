"""The closed-form risks: all of them are one polynomial with different coefficients.

Tokens are N(0, Σ). With a head's parameter W (d x k; rank one: μ) let

    t = tr Σ,   A = WᵀΣW,   C = WᵀΣ²W,   p = tr A,   c = tr C,   h = tr A²,   e = tr AC .

All risks below are linear in seven products of these: t, tp, c, e, pc, th, tp². For rank one, with a = μᵀΣμ and
b = μᵀΣ²μ, that is t, ta, b, ab, ab, ta², ta². A `Risk` holds the seven coefficients; its gradient, its mean over
Wishart covariances, its critical points and its optimal norm follow from them.

Source: Maulen-Soto & Boyer (2026) for the model and its moments; the sums, and all results of rank k, are derived
here and checked by simulation in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.gaussian.checks import check_covariance, check_degrees, check_length, check_weights

Weights = Float[Tensor, "dim"] | Float[Tensor, "dim rank"]
Covariance = Float[Tensor, "dim dim"]
Batch = Float[Tensor, "*batch dim rank"]
Covariances = Float[Tensor, "*tasks dim dim"]


@dataclass(frozen=True)
class Risk:
    """Coefficients of the products t, tp, c, e, pc, th and tp² (`tpp`)."""

    t: float = 0.0
    tp: float = 0.0
    c: float = 0.0
    e: float = 0.0
    pc: float = 0.0
    th: float = 0.0
    tpp: float = 0.0

    def __call__(self, weights: Batch, covariance: Covariances) -> Float[Tensor, "..."]:
        """The risk for any positive semidefinite Σ; batches of parameters and covariances broadcast."""
        once = covariance @ weights
        inner, outer = weights.mT @ once, once.mT @ once  # A and C
        t, p, c = _trace(covariance), _trace(inner), _trace(outer)
        h, e = (inner * inner).sum(dim=(-2, -1)), (inner * outer).sum(dim=(-2, -1))
        quartic = self.e * e + self.pc * p * c + self.th * t * h + self.tpp * t * p * p
        return self.t * t + self.tp * t * p + self.c * c + quartic

    def gradient(self, weights: Batch, covariance: Covariances) -> Float[Tensor, "*all dim rank"]:
        """The gradient, from ∇p = 2ΣW, ∇c = 2Σ²W, ∇h = 4ΣWA, ∇e = 2ΣWC + 2Σ²WA."""
        once = covariance @ weights
        twice = covariance @ once
        inner, outer = weights.mT @ once, once.mT @ once
        t, p, c = (_trace(x)[..., None, None] for x in (covariance, inner, outer))
        on_once = (self.tp * t + self.pc * c + 2 * self.tpp * t * p) * once
        on_twice = (self.c + self.pc * p) * twice
        return 2 * (on_once + on_twice + once @ (self.e * outer + 2 * self.th * t * inner) + self.e * (twice @ inner))

    def hessian(self, mu: Float[Tensor, "dim"], covariance: Covariance) -> Covariance:
        """Rank one: 2R_a Σ + 2R_b Σ² + R_aa ∇a∇aᵀ + R_ab(∇a∇bᵀ + ∇b∇aᵀ), ∇a = 2Σμ and ∇b = 2Σ²μ."""
        once = covariance @ mu
        twice = covariance @ once
        t, a, b = torch.trace(covariance), mu @ once, once @ once
        slope_a = self.tp * t + self.ab * b + 2 * self.taa * t * a
        slope_b = self.c + self.ab * a
        mixed = torch.outer(once, twice)
        curved = 8 * self.taa * t * torch.outer(once, once) + 4 * self.ab * (mixed + mixed.mT)
        return 2 * slope_a * covariance + 2 * slope_b * covariance @ covariance + curved

    @property
    def ab(self) -> float:
        """The coefficient of ab for rank one, where e = pc."""
        return self.e + self.pc

    @property
    def taa(self) -> float:
        """The coefficient of ta² for rank one, where th = tp²."""
        return self.th + self.tpp

    @property
    def critical_only_on_axes(self) -> bool:
        """Whether every critical point of rank one is 0 or an eigenvector, for every Σ.

        ∇R = 2(R_a Σ + R_b Σ²)μ vanishes off the axes only if R_a = R_b = 0; then a = -c/ab and
        b = -t(tp + 2·taa·a)/ab, which is not positive, and so impossible, exactly if this holds.
        """
        return self.tp * self.ab >= 2 * self.taa * self.c

    def optimal_size(self, eigenvalue: float, trace: float) -> float:
        """The size s = a at the critical point μ = √(s/λ) v along an eigenvector v."""
        return -(self.tp * trace + self.c * eigenvalue) / (2 * (self.ab * eigenvalue + self.taa * trace))

    def steepest(self, eigenvalue: float, trace: float) -> float:
        """The curvature along an eigenvector at its critical point: 8λ² for infinite prompts."""
        return -4 * (self.tp * trace * eigenvalue + self.c * eigenvalue**2)

    def omega(self, size: float) -> float:
        """ω(s) in R = tω(a) + (b/a)g(a)."""
        return self.t + self.tp * size + self.taa * size**2

    def gain(self, size: float) -> float:
        """g(s) in R = tω(a) + (b/a)g(a); if it is negative, the risk prefers directions of larger variance."""
        return self.c * size + self.ab * size**2

    def over_wishart(self, degrees: int) -> Risk:
        """The mean of this risk over Σ ~ Wishart(V, n), as a risk at V (unnormalised: E Σ = nV).

        Three of these moments are in Maulen-Soto & Boyer (2026), for rank one; the third is printed there with
        (μᵀΣ²μ)² on the left, but proved for (μᵀΣμ)(μᵀΣ²μ). The others are derived here, from
        E tr(BΣ)F(Σ) = n tr(BV) E F + E dF(VBΣ + ΣBV), for symmetric B, and E ΣBΣ = n²VBV + nVBᵀV + n tr(BV)V.
        """
        check_degrees(degrees)
        n = degrees
        return Risk(
            t=n * self.t,
            tp=n**2 * self.tp + n * self.c,
            c=2 * n * self.tp + n * (n + 1) * self.c,
            e=n * (n**2 + 3 * n + 4) * self.e + 4 * n * (n + 1) * (self.pc + self.th) + 8 * n * self.tpp,
            pc=2 * n * (n + 1) * self.e + n * (n**2 + n + 2) * self.pc + 4 * n * self.th + 4 * n**2 * self.tpp,
            th=n * (n + 1) * self.e + 2 * n * self.pc + n**2 * (n + 1) * self.th + 2 * n**2 * self.tpp,
            tpp=n * self.e + n**2 * (self.pc + self.th) + n**3 * self.tpp,
        )


def infinite_prompt() -> Risk:
    """R∞ = t - 2c + e: with an infinite prompt the head is the map x → ΣWWᵀx, for both kernels."""
    return Risk(t=1.0, c=-2.0, e=1.0)


def finite_prompt(length: int, *, held_out: bool = False) -> Risk:
    """Linear attention over L tokens, with the query among them or, if held out, in addition to them.

    R_L = t - (2/L)[tp + (L+1)c] + (1/L²)[(L²+3L+4)e + 2(L+1)pc + (L+1)th + tp²]
    """
    n = length
    if held_out:
        return Risk(t=1.0, c=-2.0, e=(n + 1) / n, th=1 / n)
    return Risk(
        t=1.0,
        tp=-2 / n,
        c=-2 * (n + 1) / n,
        e=(n**2 + 3 * n + 4) / n**2,
        pc=2 * (n + 1) / n**2,
        th=(n + 1) / n**2,
        tpp=1 / n**2,
    )


def risk_infinite(mu: Weights, covariance: Covariance) -> Float[Tensor, ""]:
    """R∞ = t - 2b + ab of either kernel at μ, or t - 2c + e at W.

    Minimal, t - λ₁, exactly at ±v₁/√λ₁ (Maulen-Soto & Boyer 2026); for rank k at [vᵢ/√λᵢ]O (derived here).
    """
    return _evaluate(infinite_prompt(), mu, covariance)


def risk_linear(mu: Weights, covariance: Covariance, length: int) -> Float[Tensor, ""]:
    """R_L = t - (2/L)[ta + (L+1)b] + ((L+2)/L²)[ta² + (L+3)ab] of linear attention at μ, or its form of rank k at W.

    The moments are in Maulen-Soto & Boyer (2026); the sum is derived here.
    """
    check_length(length)
    return _evaluate(finite_prompt(length), mu, covariance)


def risk_in_context(mu: Weights, scale: Covariance, degrees: int, length: int | None = None) -> Float[Tensor, ""]:
    """The mean of R∞, or of R_L of linear attention if a length is given, over tasks Σ ~ Wishart(V, n).

    R = nt - 2n[(n+1)b + ta] + n(n+2)[(n+3)ab + ta²], a, b, t at V, for infinite prompts and rank one; from the moments
    of Maulen-Soto & Boyer (2026). Finite prompts and rank k are derived here.
    """
    if length is not None:
        check_length(length)
    inner = infinite_prompt() if length is None else finite_prompt(length)
    return _evaluate(inner.over_wishart(degrees), mu, scale)


def _evaluate(risk: Risk, mu: Weights, covariance: Covariance) -> Float[Tensor, ""]:
    check_covariance(covariance)
    check_weights(mu, covariance)
    return risk(as_matrix(mu), covariance)


def as_matrix(weights: Weights) -> Float[Tensor, "dim rank"]:
    """A vector as a matrix of one column."""
    return weights[:, None] if weights.ndim == 1 else weights


def _trace(matrix: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
    return matrix.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
