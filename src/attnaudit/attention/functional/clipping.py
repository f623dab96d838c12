"""Clipping at a differentiable threshold."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Clip(torch.autograd.Function):
    """clamp(x, -τ, τ) for a τ that broadcasts to x, with gradients for both.

    `Tensor.clamp` has the same gradients but takes a dozen passes over x, a fifth of RPC-Attention's time.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, tau: Tensor) -> Tensor:
        """Clip."""
        return x.clamp(-tau, tau)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        """Save where x is within the bounds, and the result, whose sign tells on which side the rest is."""
        x, tau = inputs
        ctx.save_for_backward(output == x, output, tau)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient goes to x inside the bounds, and to τ outside, where the result is ±τ."""
        within, clipped, tau = ctx.saved_tensors
        inside = torch.where(within, gradient, 0)
        signed = torch.linalg.vecdot(gradient - inside, clipped)[..., None].sum_to_size(tau.shape)
        return inside, torch.where(tau > 0, signed / tau, 0)


def clip(x: Tensor, tau: Tensor) -> Tensor:
    """clamp(x, -τ, τ)."""
    clipped: Tensor = Clip.apply(x, tau)  # type: ignore[no-untyped-call, unused-ignore]
    return clipped
