"""Image preprocessing: a centre crop for models that we trained, or squashed as in the reproduction study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from attnaudit.protocol import Protocol

IMAGENET_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
IMAGENET_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


@dataclass(frozen=True)
class ImagePreparation:
    """How images are prepared for a model that reads squares of `size` pixels.

    The shorter side becomes `size` / `crop` pixels long, and the middle of the image is cut out; then numbers from 0 to
    1 are shifted by `mean` and divided by `std`, colour by colour.
    """

    size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    crop: float = 1.0

    def preprocess(self, protocol: Protocol) -> Callable[[Image.Image], Tensor]:
        """The preparation of one image; squashed, as in the study, for `paper`."""
        if protocol is Protocol.PAPER:
            return squashed(self.size, self.size)
        mean, std = (np.array(own, dtype=np.float32)[:, None, None] for own in (self.mean, self.std))

        def prepared(image: Image.Image) -> Tensor:
            pixels = centre_crop(image, self.size, self.crop).astype(np.float32) / 255
            return torch.from_numpy((pixels - mean) / std)

        return prepared


def centre_crop(image: Image.Image, size: int, crop: float = 1.0) -> UInt8[np.ndarray, "3 size size"]:
    """Resize the shorter side to `size` / `crop` and cut out the middle, without distortion.

    Training, audits and robustness evaluations all use it, so that their accuracies are comparable.
    """
    shorter = int(size / crop)
    factor = shorter / min(image.size)
    width, height = (max(shorter, round(side * factor)) for side in image.size)
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
