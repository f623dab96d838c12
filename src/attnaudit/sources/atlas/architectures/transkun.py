"""Transkun: a transformer over time and pitch that hears notes of a piano as intervals of time (Yan & Duan 2024).

A recording becomes a grid: columns are moments, rows are bands of frequency and, below these, what may be heard, which
is the keys of the piano and two pedals. Attention runs along both axes in turn, so that every moment attends by itself
in one half of a layer, and every row in the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad, rms_norm, scaled_dot_product_attention

from attnaudit.sources.atlas.architectures.spectrogram import Spectrogram

#: How many frames become a moment of the grid.
MOMENT = 8
#: Groups of channels that are normalised together.
_GROUPS = 4


class Positions(nn.Module):
    """Vectors of coordinates: cosines of learnt projections, and a network on them."""

    def __init__(self, coordinates: int, width: int) -> None:
        super().__init__()
        self.turn = nn.Linear(coordinates, width)
        self.network = _network(width, 4 * width)
        nn.init.normal_(self.turn.weight)
        nn.init.uniform_(self.turn.bias, -math.pi, math.pi)

    def forward(self, *axes: Float[Tensor, " _"]) -> Float[Tensor, "*grid width"]:
        """Those of all places of a grid with these axes."""
        turns = self.turn(torch.stack(torch.meshgrid(*axes, indexing="ij"), -1))
        found: Tensor = self.network(turns.cos() / math.sqrt(turns.shape[-1] / 2))
        return found


class AxisBlock(nn.Module):
    """Attention along one axis of the grid and a network on each place; what both add is scaled by channel.

    Queries are normalised. Keys and values are not, and are made from what was given to the layer.
    """

    #: Of 67 moments or 149 rows that attend by themselves; with all of them an audit has 10,368 heads for every input.
    windows_kept: ClassVar[int] = 8

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.network = _network(width, inner)
        self.scale_attention, self.scale_network = (nn.Parameter(torch.full((width,), 1e-2)) for _ in range(2))

    def forward(
        self, x: Float[Tensor, "batch lines tokens width"], given: Float[Tensor, "batch lines tokens width"]
    ) -> Float[Tensor, "batch lines tokens width"]:
        """The residual stream after the block; each line attends by itself."""
        projected = (self.query(_normed(x)), self.key(given), self.value(given))
        query, key, value = (own.flatten(0, 1).unflatten(2, (self.heads, -1)).transpose(1, 2) for own in projected)
        mixed = scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        x = x + self.out(mixed).view_as(x) * self.scale_attention
        after: Tensor = x + self.network(_normed(x)) * self.scale_network
        return after


class GridLayer(nn.Module):
    """Attention among the rows of each moment, and then among the moments of each row."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.rows = AxisBlock(width, heads, inner)
        self.moments = AxisBlock(width, heads, inner)

    def forward(self, x: Float[Tensor, "batch moments rows width"]) -> Float[Tensor, "batch moments rows width"]:
        """The residual stream after the layer."""
        after: Tensor = self.moments(self.rows(x, x).transpose(1, 2), x.transpose(1, 2)).transpose(1, 2)
        return after


class Transkun(nn.Module):
    """Sound to the scores of all intervals in which a key of the piano, or a pedal, may be down.

    Args:
        spectrogram: arguments of `Spectrogram`.
        events: the numbers of what is heard: as in MIDI for keys, negative for pedals.
        channels: after the first convolution; a place of the grid has four times as many.
        layers: how many.
        heads: per layer and axis.
        inner: width of the network on each place.
    """

    def __init__(
        self,
        spectrogram: dict[str, float],
        events: Sequence[int],
        channels: int,
        layers: int,
        heads: int,
        inner: int,
    ) -> None:
        super().__init__()
        width = 4 * channels
        self.events = tuple(events)
        self.spectrogram = Spectrogram(**spectrogram)  # type: ignore[arg-type]
        self.first = nn.Conv2d(len(self.spectrogram.width) + 1, channels, 3, padding=1)
        self.band_positions = Positions(1, channels)
        self.shrink = nn.Sequential(
            nn.ConstantPad2d((2, 1, MOMENT // 2, MOMENT // 2 - 1), 0.0),
            *_convolution(channels, 2 * channels, (2, 1)),
            nn.GELU(),
            *_convolution(2 * channels, width, (2, 2)),
            nn.GELU(),
            *_convolution(width, width, (2, 2)),
            nn.GELU(),
            *_convolution(width, width, (1, 1)),
        )
        self.heard_positions, self.event_positions = Positions(2, width), Positions(2, width)
        self.layers = nn.ModuleList(GridLayer(width, heads, inner) for _ in range(layers))
        self.spread = nn.ConvTranspose1d(width, width, MOMENT, stride=MOMENT)
        self.ends = nn.Linear(width, 2 * width + 1)

    def forward(self, sound: Float[Tensor, "batch samples"]) -> Float[Tensor, "batch events frames frames"]:
        """The score of every event from its first frame, the last axis, to its last; 0 is as good as silence."""
        heard = self.spectrogram(sound)
        frames = heard.shape[2]
        grid = self._grid(heard)
        for layer in self.layers:
            grid = layer(grid)
        tracks = grid[:, 1:, -len(self.events) :].permute(0, 2, 3, 1)
        found = self.spread(tracks.flatten(0, 1))[..., :frames].mT.unflatten(0, (len(sound), -1))
        return self._scores(found)

    def _grid(self, heard: Float[Tensor, "batch windows frames bands"]) -> Float[Tensor, "batch moments rows width"]:
        """What is heard, behind an empty moment and an empty band, and then a row for every event."""
        bands = torch.arange(heard.shape[3], dtype=heard.dtype, device=heard.device)
        small = self.shrink(self.first(heard) + self.band_positions(bands).T[:, None]).permute(0, 2, 3, 1)
        small = pad(small, (0, 0, 1, 0, 1, 0))
        moments, rows = (torch.arange(own, dtype=heard.dtype, device=heard.device) for own in small.shape[1:3])
        events = self.event_positions(moments, torch.tensor(self.events, dtype=heard.dtype, device=heard.device))
        return torch.cat([small + self.heard_positions(moments, rows), events.expand(len(small), -1, -1, -1)], 2)

    def _scores(self, found: Float[Tensor, "batch events frames width"]) -> Float[Tensor, "batch events frames frames"]:
        """Products of the features of both ends times the length, and a score of its own for a single frame."""
        width = found.shape[-1]
        last, first, alone = self.ends(found).split([width, width, 1], -1)
        places = torch.arange(found.shape[2], device=found.device)
        lengths = (places[:, None] - places).abs()
        scores: Tensor = last @ first.mT / math.sqrt(width) * lengths + torch.diag_embed(alone[..., 0])
        return scores


def _normed(x: Float[Tensor, "*axes width"]) -> Float[Tensor, "*axes width"]:
    return rms_norm(x, x.shape[-1:], eps=1e-6)


def _convolution(before: int, after: int, stride: tuple[int, int]) -> tuple[nn.Module, nn.Module]:
    return nn.Conv2d(before, after, 3, stride=stride, padding=1), nn.GroupNorm(_GROUPS, after)


def _network(width: int, inner: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))
