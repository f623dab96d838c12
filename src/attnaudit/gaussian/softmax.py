"""The softmax kernel, reduced to one dimension.

X_l = (Σμ/a) u_l + ξ_l with u_l = ⟨X_l, μ⟩ and ξ independent of u. The weights of a head depend only on u, so for any
kernel, length and μ with a = μᵀΣμ > 0

    R_L(μ) = t·ω_L(a) + (b/a)·g_L(a),     g = ρ - ω,
    ω_L(s) = E[1 - 2w₁ + Σ_l w_l²],       ρ_L(s) = E(z₁ - Σ_l w_l z_l)²,     z_l ~ N(0, 1), w = softmax(s z₁ z).

(Derived here.) For the softmax, ω and g have no closed form and are simulated, in one dimension instead of d. That
g < 0, so that the minimiser lies exactly along v₁, is observed in every computation but not proved.
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
#: Bounds of the optimal size, for every length ≥ 4 and every spectrum tried; see docs/theory/gaussian.md.
_BOUNDS = (0.05, 2.0)
#: Nodes of the trapezoidal rule over a Gaussian query; its error is far below the sampling error of the tokens.
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
        """G of each draw."""
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
        queries = self._tokens[:, : self._queries]
        weights = torch.softmax(size * queries[:, :, None] * self._tokens[:, None, :], dim=-1)
        own = weights[:, :, : self._queries].diagonal(dim1=1, dim2=2)
        omega = 1 - 2 * own + weights.square().sum(dim=-1)
        rho = (queries - (weights * self._tokens[:, None, :]).sum(dim=-1)).square()
        return omega, rho


def held_out_concentration(size: float, length: int, draws: int, generator: Generator) -> Estimate:
    """E Σ_l w_l² for a query outside the prompt: the distance of the softmax average from that of an infinite prompt.

    It falls like 1/L only for s² < 1/2; above, a random-energy argument gives L^-η, η(s) = √(1/s² + 1/4) - ½, up to
    logarithms. This is a heuristic, derived here: the change of regime is measured, the exponent is not established.
    """
    # Large queries are rare and contribute most of the sum, so the query is integrated and only the tokens are drawn.
    tokens = torch.randn(draws, length, generator=generator, dtype=torch.float64, device=generator.device)
    queries = torch.linspace(0, _FARTHEST, _NODES, dtype=torch.float64, device=generator.device)
    density = torch.exp(-queries.square() / 2) * math.sqrt(2 / math.pi) * (queries[1] - queries[0])
    density[0] /= 2
    total = torch.zeros_like(tokens[:, 0])
    for query, mass in zip(queries, density, strict=True):
        total += mass * torch.softmax(size * query * tokens, dim=-1).square().sum(dim=-1)
    return estimate(total)
