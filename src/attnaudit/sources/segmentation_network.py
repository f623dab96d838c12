"""A vision transformer that names every pixel: its patches, mapped to classes and enlarged to the picture.

This is the linear decoder of Segmenter (Strudel et al. 2021, section 3.2): the class scores of a patch with token z are
W z + b, and those of a pixel are bilinear between patches. The class token takes part in attention and is left out
afterwards.
"""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from attnaudit.records.architecture import Architecture


class SegmentationNetwork(nn.Module):
    """A backbone and a linear map.

    Args:
        backbone: a vision transformer of timm's, or one that has the same `forward_features`: the class token and the
            patches, row by row.
        architecture: sizes.
    """

    def __init__(self, backbone: nn.Module, architecture: Architecture) -> None:
        super().__init__()
        self.backbone: Any = backbone
        self.decoder = nn.Linear(architecture.width, architecture.classes)
        nn.init.trunc_normal_(self.decoder.weight, std=0.02)
        nn.init.zeros_(self.decoder.bias)
        self._patches = architecture.patches

    def no_weight_decay(self) -> set[str]:
        """The backbone's class token and positions, which timm asks the whole network for."""
        return {f"backbone.{name}" for name in self.backbone.no_weight_decay()}

    def forward(self, images: Float[Tensor, "images 3 height width"]) -> Float[Tensor, "images height width classes"]:
        """The class scores of every pixel; classes come last, as a language model's words do."""
        tokens = self.backbone.forward_features(images)[:, 1:]
        scores = self.decoder(tokens).unflatten(1, self._patches).permute(0, 3, 1, 2)
        large = functional.interpolate(scores, size=images.shape[2:], mode="bilinear", align_corners=False)
        return large.permute(0, 2, 3, 1)
