"""‖φ(q)‖² against ‖h‖²: Figures 2 and 5, and the projection error of Figures 1 and 4.

J = |‖φ(q)‖² - ‖h‖²| is the study's (and Teo & Nguyen's) projection error. It equals the true one only if the outputs
already are projections, which is what is to be shown. A projection is no longer than what it projects, so
mean(‖φ(q)‖² - ‖h‖²) < 0, or any token with ‖h‖² > ‖φ(q)‖², shows an output that is not a projection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.feature import TokenNorms
from attnaudit.kernel.gram import PerHead
from attnaudit.measures.guards import ANY_HEAD, Guard
from attnaudit.measures.measure import Measure, Scope

RELATIVE_GUARD = 1e-8
TRIM = 0.95


def _difference(norms: TokenNorms) -> Tensor:
    return (norms.phi - norms.output).abs()


def _median(tokens: Float[Tensor, "heads tokens"]) -> PerHead:
    ordered = tokens.sort(dim=-1).values
    count = ordered.shape[-1]
    median = (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2
    return median.masked_fill(tokens.isnan().any(dim=-1), torch.nan)


def _share_above(norms: TokenNorms) -> PerHead:
    unknown = (norms.output.isnan() | norms.phi.isnan()).any(dim=-1)
    return (norms.output > norms.phi).double().mean(dim=-1).masked_fill(unknown, torch.nan)


#: What each measure makes of the squared norms of a head's tokens.
OF_NORMS: Mapping[str, Callable[[TokenNorms], PerHead]] = {
    "phi_norm2": lambda norms: norms.phi.mean(dim=-1),
    "output_norm2": lambda norms: norms.output.mean(dim=-1),
    "projection_error_mae": lambda norms: _difference(norms).mean(dim=-1),
    "projection_error_rel_output": lambda norms: (_difference(norms) / (norms.output + RELATIVE_GUARD)).mean(dim=-1),
    "projection_error_rel_phi": lambda norms: (_difference(norms) / (norms.phi + RELATIVE_GUARD)).mean(dim=-1),
    "phi_norm2_median": lambda norms: _median(norms.phi),
    "projection_error_signed": lambda norms: (norms.phi - norms.output).mean(dim=-1),
    "output_above_phi": _share_above,
}


def norm_measures(norms: TokenNorms) -> dict[str, PerHead]:
    """All of them."""
    return {name: function(norms) for name, function in OF_NORMS.items()}


def log_domain_mean(logs: Float[Tensor, "heads tokens"]) -> PerHead:
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


_NORMS = Guard("‖φ(q)‖²", lambda at: at.keys.without_norms)


def _measure(name: str, text: str, guard: Guard = _NORMS, **more: Any) -> Measure:
    return Measure(name, text, lambda at: OF_NORMS[name](at.norms), scope=Scope.VALUES, guard=guard, **more)


PHI_NORM2 = _measure("phi_norm2", "‖φ(q)‖², mean over tokens")
OUTPUT_NORM2 = _measure("output_norm2", "‖h‖², mean over tokens", ANY_HEAD)
PROJECTION_ERROR_MAE = _measure("projection_error_mae", "|‖φ(q)‖² - ‖h‖²|, mean over tokens")
PROJECTION_ERROR_REL_OUTPUT = _measure(
    "projection_error_rel_output", "|‖φ(q)‖² - ‖h‖²| relative to ‖h‖², mean over tokens"
)
PROJECTION_ERROR_REL_PHI = _measure(
    "projection_error_rel_phi", "|‖φ(q)‖² - ‖h‖²| relative to ‖φ(q)‖², mean over tokens"
)
#: For curves of training, on request.
PHI_NORM2_MEDIAN = _measure("phi_norm2_median", "‖φ(q)‖², median over tokens", default=False)
PROJECTION_ERROR_SIGNED = _measure(
    "projection_error_signed",
    "‖φ(q)‖² - ‖h‖², mean over tokens: negative for outputs that are not projections",
    default=False,
)
OUTPUT_ABOVE_PHI = _measure("output_above_phi", "share of tokens with ‖h‖² > ‖φ(q)‖²", default=False)
