"""One attention head that rebuilds its tokens from each other.

    linear    T(X)_i = (1/L) Σ_l ⟨Wᵀx_i, Wᵀx_l⟩ x_l
    softmax   T(X)_i = Σ_l softmax_l(⟨Wᵀx_i, Wᵀx_l⟩) x_l
    risk      E ‖x_i - T(X)_i‖², the query being one of the tokens

Maulen-Soto & Boyer (2026), as far as the printed moments determine it: they occur exactly, and only, if the query is
inside the prompt. A temperature would only rescale W.
"""

from __future__ import annotations

from enum import StrEnum

import torch
from jaxtyping import Float
from torch import Tensor

Prompts = Float[Tensor, "prompts length dim"]
Weights = Float[Tensor, "*own dim rank"]


class Kernel(StrEnum):
    """How scores become weights."""

    LINEAR = "linear"
    SOFTMAX = "softmax"


def attend(kernel: Kernel, prompts: Prompts, weights: Weights, queries: int) -> Float[Tensor, "prompts queries dim"]:
    """The head's outputs for the first tokens of each prompt."""
    projected = prompts @ weights
    asking = projected[:, :queries]
    if kernel is Kernel.LINEAR:
        # Keys meet values first: O(L·d·k), no L x L matrix.
        return asking @ (projected.mT @ prompts) / prompts.shape[1]
    return torch.softmax(asking @ projected.mT, dim=-1) @ prompts


def reconstruction_loss(
    kernel: Kernel, prompts: Prompts, weights: Weights, queries: int | None = None
) -> Float[Tensor, "prompts"]:
    """Mean over the first `queries` tokens (all if None) of ‖x - T(X)‖², one number per prompt."""
    number = prompts.shape[1] if queries is None else min(queries, prompts.shape[1])
    error = prompts[:, :number] - attend(kernel, prompts, weights, number)
    return error.square().sum(dim=-1).mean(dim=-1)
