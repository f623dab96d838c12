"""Standardisation of queries and keys per token, as in both papers' training code, though not in their text."""

from __future__ import annotations

from torch import Tensor, nn


class TokenStandardisation(nn.Module):
    """x ↦ (x - mean(x))/std(x) over the channels of a head: unbiased standard deviation, no ε, no parameters.

    Used as a layer's `q_norm` and `k_norm`, it makes ‖q_i‖² = ‖k_i‖² = d - 1 for every token, so that the numerator of
    ‖φ(q)‖² is the constant exp((d-1)/√d) (Teo & Nguyen's and the study's reconstruction code).
    """

    def forward(self, x: Tensor) -> Tensor:
        """(…, channels) to the same shape and type; computed in float32 or wider."""
        wide = x.float() if x.element_size() < 4 else x
        standard = (wide - wide.mean(dim=-1, keepdim=True)) / wide.std(dim=-1, keepdim=True)
        return standard.to(x.dtype)
