"""Squared norms in feature space: ‖φ(q)‖² of the queries, and of the outputs, which are said to project them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads, query_blocks
from attnaudit.kernel.gram import temperature
from attnaudit.numerics.masks import visible


@dataclass(frozen=True)
class TokenNorms:
    """Per token: log ‖φ(q_i)‖², which cannot overflow, and ‖h_i‖²."""

    log_phi: Float[Tensor, "heads queries"]
    output: Float[Tensor, "heads queries"]

    @property
    def phi(self) -> Float[Tensor, "heads queries"]:
        """‖φ(q_i)‖²."""
        return torch.exp(self.log_phi)


def token_norms(heads: Heads, *, scale: Float[Tensor, "heads"] | None = None, masked: bool = False) -> TokenNorms:
    """‖φ(q)‖² = k(q,q)/g(q)² = exp(scale·‖q‖² - 2 logsumexp_j scale·q·k_j), and ‖h‖² before the output projection.

    With `masked`, g(q) is the sum over the keys that the query sees, otherwise over all.
    """
    query, key = heads.query.double(), heads.key.double()
    factor = temperature(query, scale)
    blocks = []
    for rows in query_blocks(heads):
        scores = query[:, rows] @ key.mT * factor
        if masked and heads.bias is not None:
            scores = scores.masked_fill(~visible(heads.bias[:, rows]), -torch.inf)
        blocks.append(torch.logsumexp(scores, dim=-1))
    log_mass = torch.cat(blocks, dim=-1)
    log_phi = query.square().sum(dim=-1) * factor[:, :, 0] - 2 * log_mass
    return TokenNorms(log_phi, heads.output.double().square().sum(dim=-1))
