"""A small causal language model, with any causal attention variant, as trained by `attnaudit train lm`."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from attnaudit.attention.softmax import SoftmaxAttention
from attnaudit.errors import ShapeError
from attnaudit.numerics.randomness import seeded
from attnaudit.records.architecture import DecoderArchitecture
from attnaudit.sources.attention import install_attention

#: Standard deviation of the initial weights; those that write to the residual stream are smaller, by depth.
_DEVIATION = 0.02


class Decoder(nn.Module):
    """Word and position embeddings, pre-norm blocks of causal attention and MLP, and tied output weights."""

    def __init__(self, architecture: DecoderArchitecture) -> None:
        super().__init__()
        self.context = architecture.context
        self.words = nn.Embedding(architecture.vocabulary, architecture.width)
        self.places = nn.Embedding(architecture.context, architecture.width)
        self.dropout = nn.Dropout(architecture.dropout)
        self.blocks = nn.ModuleList(
            _Block(architecture.width, architecture.heads, architecture.dropout) for _ in range(architecture.depth)
        )
        self.norm = nn.LayerNorm(architecture.width)
        self._initialise(architecture.depth)

    def forward(self, input_ids: Int64[Tensor, "batch words"]) -> Float[Tensor, "batch words vocabulary"]:
        """For every word, the scores of the next word, given all words up to it."""
        count = input_ids.shape[-1]
        if count > self.context:
            raise ShapeError(f"The model reads at most {self.context} words at once, got {count}.")
        x = self.dropout(self.words(input_ids) + self.places.weight[:count])
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.words.weight)

    @torch.no_grad()
    def _initialise(self, depth: int) -> None:
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                inward = name.endswith(("attn.proj.weight", "shrink.weight"))
                parameter.normal_(std=_DEVIATION / math.sqrt(2 * depth) if inward else _DEVIATION)
            elif name.endswith("bias"):
                parameter.zero_()


class _Block(nn.Module):
    """x + attention(norm(x)), then x + MLP(norm(x))."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = SoftmaxAttention(width, heads, qkv_bias=True, proj_drop=dropout)
        self.norm2 = nn.LayerNorm(width)
        self.grow = nn.Linear(width, 4 * width)
        self.shrink = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "batch words width"]) -> Float[Tensor, "batch words width"]:
        x = x + self.attn(self.norm1(x), is_causal=True)
        added: Tensor = self.dropout(self.shrink(functional.gelu(self.grow(self.norm2(x)))))
        return x + added


def build_decoder(architecture: DecoderArchitecture, seed: int) -> Decoder:
    """The network in evaluation mode, initialised from a seed."""
    with seeded(seed):
        model = Decoder(architecture)
        install_attention(model, architecture, architecture.tokens, causal=True)
    model.eval()
    return model
