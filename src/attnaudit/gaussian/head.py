"""One attention head that reconstructs its tokens from each other.

    linear    T(X)_i = (1/L) Σ_l ⟨Wᵀx_i, Wᵀx_l⟩ x_l
    softmax   T(X)_i = Σ_l softmax_l(⟨Wᵀx_i, Wᵀx_l⟩) x_l
    risk      E ‖x_i - T(X)_i‖², the query being one of the tokens

The model of Maulen-Soto & Boyer (2026), as far as their printed moments determine it: they hold if and only if the
query is inside the prompt. A temperature would only rescale W.
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
    """The head's outputs for the first `queries` tokens of each prompt."""
    projected = prompts @ weights
    first = projected[:, :queries]
    if kernel is Kernel.LINEAR:
        # Keys times values first: O(L·d·k), without an L x L matrix.
        return first @ (projected.mT @ prompts) / prompts.shape[1]
    return torch.softmax(first @ projected.mT, dim=-1) @ prompts


def reconstruction_loss(
    kernel: Kernel, prompts: Prompts, weights: Weights, queries: int | None = None
) -> Float[Tensor, "prompts"]:
    """‖x - T(X)‖² averaged over the first `queries` tokens (all if None), one number per prompt."""
    number = prompts.shape[1] if queries is None else min(queries, prompts.shape[1])
    error = prompts[:, :number] - attend(kernel, prompts, weights, number)
    return error.square().sum(dim=-1).mean(dim=-1)
