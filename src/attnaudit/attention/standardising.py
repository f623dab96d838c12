"""Queries and keys standardised per token, as both papers' training code does without saying so."""

from __future__ import annotations

from torch import Tensor, nn


class TokenStandardisation(nn.Module):
    """x ↦ (x - mean(x))/std(x) over the channels of a head, with the unbiased deviation, no ε and nothing to learn.

    In the place of a layer's `q_norm` and `k_norm` it makes ‖q_i‖² = ‖k_i‖² = d - 1 for every token: the numerator of
    ‖φ(q)‖² is then the constant exp((d-1)/√d) (Teo & Nguyen's and the study's reconstruction code).
    """

    def forward(self, x: Tensor) -> Tensor:
        """(…, channels) to the same shape and type; computed in float32 at least."""
        wide = x.float() if x.element_size() < 4 else x
        standard = (wide - wide.mean(dim=-1, keepdim=True)) / wide.std(dim=-1, keepdim=True)
        return standard.to(x.dtype)
