"""The minimiser of the population risk, for either kernel."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Generator, Tensor

from attnaudit.gaussian.checks import check_covariance, check_length
from attnaudit.gaussian.covariance import principal_axes
from attnaudit.gaussian.estimate import Estimate
from attnaudit.gaussian.head import Kernel
from attnaudit.gaussian.risk import Covariance, finite_prompt
from attnaudit.gaussian.softmax import SoftmaxProfile

#: Numbers drawn for the size s of the softmax minimiser, which give a standard error of about 0.005.
_DRAWN = 2**20


@dataclass(frozen=True)
class Optimum:
    """The minimiser ±√(s/λ₁)v₁, its size s with a standard error, and g_L(s), which determines the curvature."""

    point: Float[Tensor, "dim"]
    size: Estimate
    gain: float


def optimum(kernel: Kernel, covariance: Covariance, length: int, generator: Generator) -> Optimum:
    """In closed form for linear attention, s_L = L(t + (L+1)λ₁)/((L+2)(t + (L+3)λ₁)); by Monte Carlo for softmax.

    Both derived here. For softmax, s*_L is above 1 for few tokens (the query copies itself), below 1 for more, and
    slowly returns to 1.
    """
    check_covariance(covariance)
    check_length(length)
    eigenvalues, vectors = principal_axes(covariance)
    largest, trace = float(eigenvalues[0]), float(eigenvalues.sum())
    if kernel is Kernel.LINEAR:
        risk = finite_prompt(length)
        size = Estimate(risk.optimal_size(largest, trace), 0.0)
        gain = risk.gain(size.mean)
    else:
        profile = SoftmaxProfile(length, max(512, _DRAWN // (4 * length)), generator)
        size = profile.optimal_size(trace / largest)
        gain = float(profile.gain(size.mean).mean())
    return Optimum(vectors[:, 0] * (size.mean / largest) ** 0.5, size, gain)
