"""The softmax kernel, reduced to one dimension.

X_l = (Σμ/a) u_l + ξ_l with u_l = ⟨X_l, μ⟩ and ξ independent of u. The weights of a head depend on u alone, so for any
kernel, length and μ with a = μᵀΣμ > 0

    R_L(μ) = t·ω_L(a) + (b/a)·g_L(a),     g = ρ - ω,
    ω_L(s) = E[1 - 2w₁ + Σ_l w_l²],       ρ_L(s) = E(z₁ - Σ_l w_l z_l)²,     z_l ~ N(0, 1), w = softmax(s z₁ z).

(Derived here.) There is no closed form for ω and g of the softmax, so they are drawn, in one dimension instead of d.
That g < 0, so that the minimiser lies along v₁ exactly, is seen in every computation and not proved.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from scipy.optimize import minimize_scalar
from torch import Generator, Tensor

from attnaudit.gaussian.checks import check_length
from attnaudit.gaussian.estimate import Estimate, estimate

PerDraw = Float[Tensor, "draws"]
#: The optimal size lies inside for every length from 4 on and every spectrum tried; see docs/theory/gaussian.md.
_BOUNDS = (0.05, 2.0)
#: The trapezoidal rule over a Gaussian query, far finer than the spread the tokens leave.
_FARTHEST, _NODES = 6.0, 49


class SoftmaxProfile:
    """ω_L and g_L from one set of draws, so that they are smooth in s."""

    def __init__(self, length: int, draws: int, generator: Generator, queries: int = 4) -> None:
        check_length(length)
        self._tokens = torch.randn(draws, length, generator=generator, dtype=torch.float64, device=generator.device)
        self._queries = min(queries, length)

    def omega(self, size: float) -> PerDraw:
        """1 - 2w₁ + Σw², averaged over the queries of each draw."""
        return self._parts(size)[0].mean(dim=1)

    def gain(self, size: float) -> PerDraw:
        """g, draw by draw."""
        omega, rho = self._parts(size)
        return (rho - omega).mean(dim=1)

    def risk(self, size: float, ratio: float) -> PerDraw:
        """ratio·ω + g, which is R/λ₁ on the leading axis if ratio = t/λ₁."""
        omega, rho = self._parts(size)
        return ((ratio - 1) * omega + rho).mean(dim=1)

    def optimal_size(self, ratio: float) -> Estimate:
        """s*_L, the minimiser of R on the leading axis, with its standard error Var(R′)^½/R″ (delta method)."""
        found = minimize_scalar(
            lambda size: float(self.risk(size, ratio).mean()), bounds=_BOUNDS, method="bounded", options={"xatol": 1e-3}
        )
        size, step = float(found.x), 0.02
        below, here, above = (self.risk(size + shift, ratio) for shift in (-step, 0.0, step))
        slope = estimate((above - below) / (2 * step))
        curvature = float((above - 2 * here + below).mean()) / step**2
        return Estimate(size, slope.standard_error / abs(curvature))

    def _parts(self, size: float) -> tuple[Tensor, Tensor]:
        asking = self._tokens[:, : self._queries]
        weights = torch.softmax(size * asking[:, :, None] * self._tokens[:, None, :], dim=-1)
        own = weights[:, :, : self._queries].diagonal(dim1=1, dim2=2)
        omega = 1 - 2 * own + weights.square().sum(dim=-1)
        rho = (asking - (weights * self._tokens[:, None, :]).sum(dim=-1)).square()
        return omega, rho


def held_out_concentration(size: float, length: int, draws: int, generator: Generator) -> Estimate:
    """E Σ_l w_l² for a query outside the prompt: how far the softmax average is from the infinite prompt's.

    It falls like 1/L only for s² < 1/2; beyond, a random-energy argument gives L^-η, η(s) = √(1/s² + 1/4) - ½ up to
    logarithms. Heuristic, derived here; the change of regime is measured, the exponent is not established.
    """
    # Large queries are rare and carry most of the sum, so the query is integrated and only the tokens are drawn.
    tokens = torch.randn(draws, length, generator=generator, dtype=torch.float64, device=generator.device)
    queries = torch.linspace(0, _FARTHEST, _NODES, dtype=torch.float64, device=generator.device)
    density = torch.exp(-queries.square() / 2) * math.sqrt(2 / math.pi) * (queries[1] - queries[0])
    density[0] /= 2
    total = torch.zeros_like(tokens[:, 0])
    for query, mass in zip(queries, density, strict=True):
        total += mass * torch.softmax(size * query * tokens, dim=-1).square().sum(dim=-1)
    return estimate(total)
