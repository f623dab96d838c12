"""What a monitor takes from every token, and the numbers per head it makes of them: tensors in, tensors out."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.feature import TokenNorms, token_norms
from attnaudit.measures.batches import heads_per_input
from attnaudit.measures.legacy import legacy_log_phi, log_mean_excess
from attnaudit.measures.norms import log_domain_mean, norm_measures

#: Per head: log ‖φ(q)‖² and ‖h‖² of every token, and Teo & Nguyen's log ‖φ(q)‖² where it is asked for.
TokenNumbers = Float[Tensor, "quantities heads tokens"]


def token_numbers(heads: Heads, *, legacy: bool) -> TokenNumbers:
    """The quantities of a layer, with the tokens of all inputs and windows of the batch side by side."""
    norms = token_norms(heads, scale=heads.scale.double())
    quantities = [norms.log_phi, norms.output]
    if legacy:
        quantities.append(legacy_log_phi(heads, norms.log_phi))
    number = torch.tensor([entry.head for entry in heads.index], device=norms.log_phi.device)
    order = torch.argsort(number, stable=True)
    return torch.stack(quantities)[:, order].reshape(len(quantities), heads_per_input(heads), -1)


def batch_measures(numbers: TokenNumbers) -> dict[str, Float[Tensor, "heads"]]:
    """Means, median and shares over all tokens of a batch; the mean of ‖φ(q)‖² by logsumexp."""
    norms = TokenNorms(numbers[0], numbers[1])
    values = norm_measures(norms) | {"phi_norm2": log_domain_mean(norms.log_phi)}
    if len(numbers) > 2:
        values["legacy_log_projection_error"] = log_mean_excess(numbers[2], norms.output)
    return values


def why_missing(numbers: TokenNumbers) -> list[str]:
    """Why a number of a head is missing, if one is: ‖φ(q)‖² may be too large, or its excess over ‖h‖² negative."""
    held = torch.isfinite(torch.exp(numbers[0])).all(dim=-1)
    reasons = ("‖φ(q)‖² is beyond float64", "the mean of ‖φ(q)‖² - ‖h‖² is negative and has no logarithm")
    return [reasons[fits] for fits in held.tolist()]
