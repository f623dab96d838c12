"""From a picture to a tensor, as the reproduction study does it for every model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from PIL import Image
from torch import Tensor

IMAGENET_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
IMAGENET_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


def squashed(height: int, width: int) -> Callable[[Image.Image], Tensor]:
    """Bilinear resize without keeping the aspect ratio or cropping, then ImageNet mean and deviation.

    Models whose own statistics differ (the four ViTs of Table 1 want 0.5/0.5) get these all the same.
    """

    def preprocess(image: Image.Image) -> Tensor:
        pixels = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR), dtype=np.float32) / 255
        normalised = (pixels - IMAGENET_MEAN) / IMAGENET_STD
        return torch.from_numpy(normalised).permute(2, 0, 1).contiguous()

    return preprocess
