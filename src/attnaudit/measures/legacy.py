"""The projection error as the code of Teo & Nguyen (2024) computes it, for comparison with their curves only.

Their code takes ‖q‖² and, in the denominator, q·k_0 without the temperature s = 1/√d that their softmax has:

    ‖φ(q_i)‖² := exp(‖q_i‖²) / (exp(q_i·k_0) / softmax_i0)²,

k_0 being the key of the class token, and reports log mean(‖φ(q)‖² - ‖h‖²), a natural logarithm, averaged over layers.
In terms of the true norm the logarithm of theirs is

    log ‖φ(q_i)‖² + (1 - s)(‖q_i‖² - 2 q_i·k_0),

which needs no exponential. Their network standardises q and k token by token in every forward pass, so that
‖q‖² = d - 1; here both are taken as the model uses them.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.gram import PerHead
from attnaudit.measures.guards import Guard
from attnaudit.measures.measure import Measure, Scope
from attnaudit.measures.measure_input import MeasureInput


def legacy_log_phi(heads: Heads, log_phi: Float[Tensor, "heads queries"]) -> Float[Tensor, "heads queries"]:
    """The logarithm of their ‖φ(q)‖², from that of the true one."""
    query, first_key = heads.query.double(), heads.key[:, :1].double()
    surplus = query.square().sum(dim=-1) - 2 * (query @ first_key.mT)[:, :, 0]
    return log_phi + (1 - heads.scale.double())[:, None] * surplus


def log_mean_excess(
    log_phi: Float[Tensor, "heads tokens"], output: Float[Tensor, "heads tokens"]
) -> Float[Tensor, "heads"]:
    """The logarithm of mean(exp(log_phi) - output); NaN where the mean is negative, as in their curves."""
    largest = log_phi.amax(dim=-1)
    scaled = torch.exp(log_phi - largest[:, None]) - output * torch.exp(-largest)[:, None]
    return largest + torch.log(scaled.mean(dim=-1))


def legacy_log_projection_error(at: MeasureInput) -> PerHead:
    """Log mean(‖φ(q)‖² - ‖h‖²) with their ‖φ(q)‖²."""
    return log_mean_excess(legacy_log_phi(at.heads, at.norms.log_phi), at.norms.output)


def _negative(at: MeasureInput) -> list[str | None]:
    negative = "the mean of ‖φ(q)‖² - ‖h‖² is negative and has no logarithm"
    known = (at.norms.log_phi.isfinite() & at.norms.output.isfinite()).all(dim=-1)
    return [
        problem or (negative if finite else None)
        for problem, finite in zip(at.keys.without_norms, known.tolist(), strict=True)
    ]


LEGACY_LOG_PROJECTION_ERROR = Measure(
    "legacy_log_projection_error",
    "log mean(‖φ(q)‖² - ‖h‖²) as Teo & Nguyen's code has it",
    legacy_log_projection_error,
    scope=Scope.VALUES,
    guard=Guard("mean above 0", _negative),
    default=False,
)
