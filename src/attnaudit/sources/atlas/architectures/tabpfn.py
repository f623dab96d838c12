"""TabPFN: a transformer over the rows of a table, which learns from those that have a label (Hollmann et al. 2023)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import gelu


class RowLayer(nn.Module):
    """Attention to the labelled rows, and a network on each row, with normalisation after both.

    Parameters have the names of torch's `TransformerEncoderLayer`.
    """

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.linear1 = nn.Linear(width, inner)
        self.linear2 = nn.Linear(inner, width)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, rows: Float[Tensor, "batch rows width"], labelled: int) -> Float[Tensor, "batch rows width"]:
        """The first rows are labelled: all rows look at these, and at no others."""
        known = rows[:, :labelled]
        attended, _ = self.self_attn(rows, known, known, need_weights=False)
        rows = self.norm1(rows + attended)
        normed: Tensor = self.norm2(rows + self.linear2(gelu(self.linear1(rows))))
        return normed


class TabPFN(nn.Module):
    """Rows of features with labels for the first ones, to the classes of the others.

    Args:
        features: the most that a table may have; others are 0.
        classes: the most that there may be.
        width: of a row inside.
        layers: how many.
        heads: per layer.
        inner: width of the network on each row.
    """

    def __init__(self, features: int, classes: int, width: int, layers: int, heads: int, inner: int) -> None:
        super().__init__()
        self.encoder = nn.Linear(features, width)
        self.y_encoder = nn.Linear(1, width)
        self.layers = nn.ModuleList(RowLayer(width, heads, inner) for _ in range(layers))
        self.decoder = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, classes))

    def forward(
        self, rows: Float[Tensor, "batch rows features"], labels: Float[Tensor, "batch labelled"]
    ) -> Float[Tensor, "batch unlabelled classes"]:
        """Logits of the classes of rows without a label, which come last."""
        labelled = labels.shape[1]
        known = self.y_encoder(labels[..., None])
        inside = self.encoder(rows)
        inside = torch.cat([inside[:, :labelled] + known, inside[:, labelled:]], 1)
        for layer in self.layers:
            inside = layer(inside, labelled)
        logits: Tensor = self.decoder(inside[:, labelled:])
        return logits
