"""An encoder of notes with rotary positions, in the layout of x-transformers."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import layer_norm, scaled_dot_product_attention

#: Dimensions of a head that positions turn; the others know nothing of positions.
ROTATED = 32


class ShiftedNorm(nn.Module):
    """Layer normalisation without a bias, whose scale is stored less 1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(width))

    def forward(self, x: Float[Tensor, "*axes width"]) -> Float[Tensor, "*axes width"]:
        """Zero mean and unit variance, scaled."""
        return layer_norm(x, x.shape[-1:], self.gamma + 1)


def rotated(x: Float[Tensor, "batch heads length dim"]) -> Float[Tensor, "batch heads length dim"]:
    """Pairs of neighbours among the first dimensions, turned by t·10000^(-2i/32) at position t (Su et al. 2021)."""
    turning, still = x[..., :ROTATED], x[..., ROTATED:]
    speeds = 10000 ** (-torch.arange(0, ROTATED, 2, device=x.device) / ROTATED)
    angles = torch.arange(x.shape[2], device=x.device)[:, None] * speeds
    first, second = turning[..., 0::2], turning[..., 1::2]
    turned = (first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin())
    return torch.cat([torch.stack(turned, -1).flatten(-2), still], -1)


class NoteAttention(nn.Module):
    """Attention without biases, behind a normalisation."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = ShiftedNorm(width)
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_k = nn.Linear(width, width, bias=False)
        self.to_v = nn.Linear(width, width, bias=False)
        self.to_out = nn.Linear(width, width, bias=False)

    def forward(self, x: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch length width"]:
        """What is added to the residual stream."""
        normed = self.norm(x)
        query, key, value = (
            project(normed).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for project in (self.to_q, self.to_k, self.to_v)
        )
        mixed = scaled_dot_product_attention(rotated(query), rotated(key), value)
        added: Tensor = self.to_out(mixed.transpose(1, 2).flatten(2))
        return added


class NoteEncoder(nn.Module):
    """Tokens of notes to the logits of those that were masked.

    Args:
        tokens: how many different ones there are.
        width: of a token inside.
        layers: how many.
        heads: per layer.
    """

    def __init__(self, tokens: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.attention = nn.ModuleList(NoteAttention(width, heads) for _ in range(layers))
        self.network = nn.ModuleList(
            nn.Sequential(ShiftedNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(layers)
        )
        self.norm = ShiftedNorm(width)
        self.to_logits = nn.Linear(width, tokens, bias=False)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length tokens"]:
        """Logits of every token."""
        x = self.embedding(tokens)
        for attention, network in zip(self.attention, self.network, strict=True):
            x = x + attention(x)
            x = x + network(x)
        logits: Tensor = self.to_logits(self.norm(x))
        return logits
