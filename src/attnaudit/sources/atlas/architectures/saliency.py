"""A vision transformer with a decoder that says which parts of an image draw the eye."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn


class SaliencyDecoder(nn.Module):
    """From a grid of features to a map of eight times its side: upsampled and convolved three times, then one channel.

    Args:
        widths: channels of the grid, and after each step.
    """

    def __init__(self, widths: tuple[int, int, int, int]) -> None:
        super().__init__()
        for step, (before, after) in enumerate(pairwise(widths), start=1):
            self.add_module(f"upconv{step}", nn.ConvTranspose2d(before, after, 4, stride=2, padding=1))
            self.add_module(f"bn{step}", nn.BatchNorm2d(after))
        self.final_conv = nn.Conv2d(widths[-1], 1, 1)

    def forward(self, grid: Float[Tensor, "batch width side side"]) -> Float[Tensor, "batch 1 large large"]:
        """Logits of the map."""
        for step in (1, 2, 3):
            grid = getattr(self, f"bn{step}")(getattr(self, f"upconv{step}")(grid)).relu()
        logits: Tensor = self.final_conv(grid)
        return logits


class SaliencyNetwork(nn.Module):
    """A vision transformer of timm, whose features of patches make up the grid of the decoder."""

    def __init__(self, backbone: Any, widths: tuple[int, int, int, int]) -> None:
        super().__init__()
        self.backbone = backbone
        self.decoder = SaliencyDecoder(widths)

    def forward(self, images: Float[Tensor, "batch 3 size size"]) -> Float[Tensor, "batch 1 large large"]:
        """How much each place draws the eye, from 0 to 1."""
        patches: Tensor = self.backbone.forward_features(images)[:, 1:]  # without the class token
        side = math.isqrt(patches.shape[1])
        logits: Tensor = self.decoder(patches.mT.reshape(len(images), -1, side, side))
        return logits.sigmoid()
