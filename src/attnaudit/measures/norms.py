"""‖φ(q)‖² against ‖h‖²: Figures 2 and 5, and the projection error of Figures 1 and 4."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.feature import TokenNorms

RELATIVE_GUARD = 1e-8
TRIM = 0.95


def norm_measures(norms: TokenNorms) -> dict[str, Float[Tensor, "heads"]]:
    """Token means of both squared norms, of their difference J, and of J relative to either.

    J = |‖φ(q)‖² - ‖h‖²| is the study's (and Teo & Nguyen's) projection error. It equals the true one only if the
    outputs already are projections, which is what is to be shown.
    """
    difference = (norms.phi - norms.output).abs()
    return {
        "phi_norm2": norms.phi.mean(dim=-1),
        "output_norm2": norms.output.mean(dim=-1),
        "projection_error_mae": difference.mean(dim=-1),
        "projection_error_rel_output": (difference / (norms.output + RELATIVE_GUARD)).mean(dim=-1),
        "projection_error_rel_phi": (difference / (norms.phi + RELATIVE_GUARD)).mean(dim=-1),
    }


def tracking_measures(norms: TokenNorms) -> dict[str, Float[Tensor, "heads"]]:
    """What `norm_measures` leaves open: the median of ‖φ(q)‖², the sign of J, and how often ‖h‖² is the larger.

    A projection is no longer than what it projects, so mean(‖φ(q)‖² - ‖h‖²) < 0, or any token with ‖h‖² > ‖φ(q)‖²,
    shows that an output is none.
    """
    ordered = norms.phi.sort(dim=-1).values
    count = ordered.shape[-1]
    return {
        "phi_norm2_median": (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2,
        "projection_error_signed": (norms.phi - norms.output).mean(dim=-1),
        "output_above_phi": (norms.output > norms.phi).double().mean(dim=-1),
    }


def log_domain_mean(logs: Float[Tensor, "heads tokens"]) -> Float[Tensor, "heads"]:
    """mean(exp(logs)) by logsumexp: no sum overflows that the mean does not."""
    return torch.exp(torch.logsumexp(logs, dim=-1) - math.log(logs.shape[-1]))


@dataclass(frozen=True)
class Quartiles:
    """Median and the band around it."""

    lower: float
    median: float
    upper: float
    count: int


def trimmed_quartiles(values: Float[Tensor, "*shape"]) -> Quartiles:
    """Quartiles of what is left after dropping values above the 95th percentile, as in the study's norm figures."""
    pool = values.flatten().double()
    pool = pool[pool <= torch.quantile(pool, TRIM)]
    lower, median, upper = torch.quantile(pool, pool.new_tensor([0.25, 0.5, 0.75])).tolist()
    return Quartiles(lower, median, upper, len(pool))
