"""The moments printed by Maulen-Soto & Boyer (2026), of which the risks consist."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from attnaudit.gaussian.checks import check_covariance, check_degrees
from attnaudit.gaussian.risk import Covariance

Vector = Float[Tensor, "dim"]


def gaussian_moments(mu: Vector, covariance: Covariance) -> dict[str, float]:
    """I₁ … I₅ for independent x, y ~ N(0, Σ), by Isserlis' theorem; the keys are the integrands."""
    check_covariance(covariance)
    t, a, b = _scalars(mu, covariance)
    return {
        "⟨x,μ⟩²": a,
        "⟨x,y⟩⟨x,μ⟩⟨y,μ⟩": b,
        "⟨x,y⟩⟨x,μ⟩³⟨y,μ⟩": 3 * a * b,
        "⟨x,μ⟩²|x|²": t * a + 2 * b,
        "⟨x,μ⟩⁴|x|²": 3 * t * a * a + 12 * a * b,
    }


def wishart_moments(mu: Vector, scale: Covariance, degrees: int) -> dict[str, float]:
    """Moments of Σ ~ Wishart(V, n), unnormalised. The third is printed as E(μᵀΣ²μ)²; the last two are derived here."""
    check_covariance(scale)
    check_degrees(degrees)
    n = degrees
    t, a, b = _scalars(mu, scale)
    return {
        "tr Σ": n * t,
        "μᵀΣ²μ": n * (n + 1) * b + n * t * a,
        "(μᵀΣμ)(μᵀΣ²μ)": n * (n + 2) * ((n + 3) * a * b + t * a * a),
        "tr(Σ)·μᵀΣμ": n * n * t * a + 2 * n * b,
        "tr(Σ)·(μᵀΣμ)²": n * n * (n + 2) * t * a * a + 4 * n * (n + 2) * a * b,
    }


def _scalars(mu: Vector, covariance: Covariance) -> tuple[float, float, float]:
    once = covariance @ mu
    return float(covariance.trace()), float(mu @ once), float(once @ once)
