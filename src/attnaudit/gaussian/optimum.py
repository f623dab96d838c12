"""Where the population risk of either kernel is smallest."""

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

#: Numbers drawn for the softmax's size: its standard error is then about 0.005.
_DRAWN = 2**20


@dataclass(frozen=True)
class Optimum:
    """The minimiser is ±√(s/λ₁)v₁: its point, s with the error it is known to, and g_L(s), which sets the curvature."""

    point: Float[Tensor, "dim"]
    size: Estimate
    gain: float


def optimum(kernel: Kernel, covariance: Covariance, length: int, generator: Generator) -> Optimum:
    """Of linear attention in closed form, s_L = L(t + (L+1)λ₁)/((L+2)(t + (L+3)λ₁)); of the softmax by drawing.

    Both derived here. The softmax's s*_L is above 1 for few tokens (the query copies itself), below 1 for more, and
    returns to 1 slowly.
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
