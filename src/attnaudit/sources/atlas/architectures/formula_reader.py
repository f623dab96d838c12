"""A vision transformer that reads the picture of a formula, and a decoder that writes it down letter by letter."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class PatchEmbedding(nn.Module):
    """Patches of a grey picture, row by row, with learnt positions."""

    def __init__(self, patch: int, width: int, patches: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(1, width, patch, stride=patch)
        self.pos_emb = nn.Parameter(torch.randn(1, patches, width) * 0.02)
        self.norm = nn.LayerNorm(width)

    def forward(self, pictures: Float[Tensor, "batch 1 height width"]) -> Float[Tensor, "batch patches width"]:
        """Normalised embeddings."""
        embedded: Tensor = self.norm(self.proj(pictures).flatten(2).mT + self.pos_emb)
        return embedded


class LetterEmbedding(nn.Module):
    """Letters with learnt positions."""

    def __init__(self, letters: int, width: int, length: int) -> None:
        super().__init__()
        self.token_emb = nn.Embedding(letters, width)
        self.pos_emb = nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, letters: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length width"]:
        """Normalised embeddings."""
        places = torch.arange(letters.shape[1], device=letters.device)
        embedded: Tensor = self.norm(self.token_emb(letters) + self.pos_emb(places))
        return embedded


class EncoderBlock(nn.Module):
    """Attention among patches and a network on each, both behind a normalisation."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = _network(width, inner)

    def forward(self, x: Float[Tensor, "batch patches width"]) -> Float[Tensor, "batch patches width"]:
        """The residual stream after the block."""
        normed = self.norm1(x)
        x = x + self.attn(normed, normed, normed, need_weights=False)[0]
        after: Tensor = x + self.mlp(self.norm2(x))
        return after


class DecoderBlock(nn.Module):
    """Causal attention among letters, attention to the patches, and a network on each letter."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(width)
        self.self_attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.cross_norm = nn.LayerNorm(width)
        self.cross_attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ffn_norm = nn.LayerNorm(width)
        self.ffn = _network(width, inner)

    def forward(
        self, x: Float[Tensor, "batch length width"], seen: Float[Tensor, "batch patches width"]
    ) -> Float[Tensor, "batch length width"]:
        """The residual stream after the block."""
        normed = self.self_norm(x)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        x = x + self.self_attn(normed, normed, normed, attn_mask=later, is_causal=True, need_weights=False)[0]
        x = x + self.cross_attn(self.cross_norm(x), seen, seen, need_weights=False)[0]
        after: Tensor = x + self.ffn(self.ffn_norm(x))
        return after


class FormulaReader(nn.Module):
    """Pictures and the letters written so far, to the next letters.

    Args:
        patch: side of a patch, in pixels.
        patches: of a picture.
        letters: how many different ones there are.
        length: of the longest formula.
        width: of a patch or letter inside.
        layers: of the encoder, and of the decoder.
        heads: per layer.
        inner: width of the network on each patch or letter.
    """

    def __init__(
        self, patch: int, patches: int, letters: int, length: int, width: int, layers: int, heads: int, inner: int
    ) -> None:
        super().__init__()
        self.patch_embed = PatchEmbedding(patch, width, patches)
        self.encoder_blocks = nn.ModuleList(EncoderBlock(width, heads, inner) for _ in range(layers))
        self.encoder_norm = nn.LayerNorm(width)
        self.decoder_embed = LetterEmbedding(letters, width, length)
        self.decoder_blocks = nn.ModuleList(DecoderBlock(width, heads, inner) for _ in range(layers))
        self.decoder_norm = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, letters)

    def forward(
        self, pictures: Float[Tensor, "batch 1 height width"], letters: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "batch length letters"]:
        """Logits of the letter after each one."""
        seen = self.patch_embed(pictures)
        for block in self.encoder_blocks:
            seen = block(seen)
        seen, written = self.encoder_norm(seen), self.decoder_embed(letters)
        for block in self.decoder_blocks:
            written = block(written, seen)
        logits: Tensor = self.lm_head(self.decoder_norm(written))
        return logits


def _network(width: int, inner: int) -> nn.Sequential:
    """Two linear layers; dropout does nothing here, and has a number of its own in the names of weights."""
    return nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Dropout(0.0), nn.Linear(inner, width))
