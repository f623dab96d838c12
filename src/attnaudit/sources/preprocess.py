"""Image preprocessing: a centre crop for models that we trained, or squashed as in the reproduction study."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

IMAGENET_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
IMAGENET_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


def centre_crop(image: Image.Image, size: int) -> UInt8[np.ndarray, "3 size size"]:
    """Resize the shorter side to `size` and crop the middle of the longer one, without distortion.

    Training, audits and robustness evaluations all use it, so that their accuracies are comparable.
    """
    factor = size / min(image.size)
    width, height = (max(size, round(side * factor)) for side in image.size)
    resized = image.resize((width, height), Image.Resampling.BICUBIC)
    left, top = (width - size) // 2, (height - size) // 2
    return np.ascontiguousarray(np.asarray(resized.crop((left, top, left + size, top + size))).transpose(2, 0, 1))


def squashed(height: int, width: int) -> Callable[[Image.Image], Tensor]:
    """Bilinear resize that ignores the aspect ratio, then normalisation with ImageNet's mean and deviation.

    Models trained with other statistics (the four ViTs of Table 1 use 0.5/0.5) get these too, as in the study.
    """

    def preprocess(image: Image.Image) -> Tensor:
        pixels = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR), dtype=np.float32) / 255
        normalised = (pixels - IMAGENET_MEAN) / IMAGENET_STD
        return torch.from_numpy(normalised).permute(2, 0, 1).contiguous()

    return preprocess
