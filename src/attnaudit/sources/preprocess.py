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
    """How images are prepared for a model that reads `size` pixels in height and, unless it reads squares, `width`.

    The image is resized until it just covers this, divided by `crop`, and its middle is cut out; then numbers from 0 to
    1 are shifted by `mean` and divided by `std`, colour by colour.
    """

    size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    crop: float = 1.0
    width: int | None = None

    def preprocess(self, protocol: Protocol) -> Callable[[Image.Image], Tensor]:
        """The preparation of one image; squashed, as in the study, for `paper`."""
        if protocol is Protocol.PAPER:
            return squashed(self.size, self.width or self.size)
        mean, std = (np.array(own, dtype=np.float32)[:, None, None] for own in (self.mean, self.std))

        def prepared(image: Image.Image) -> Tensor:
            pixels = centre_crop(image, self.size, self.width, crop=self.crop).astype(np.float32) / 255
            return torch.from_numpy((pixels - mean) / std)

        return prepared


def centre_crop(
    image: Image.Image, height: int, width: int | None = None, *, crop: float = 1.0
) -> UInt8[np.ndarray, "3 height width"]:
    """Resize the image until it just covers `height` x `width`, a square by default, over `crop`; cut out the middle.

    Nothing is distorted. Training, audits and robustness evaluations all use it, so that their accuracies are
    comparable.
    """
    return np.ascontiguousarray(_middle(image, height, width, crop, Image.Resampling.BICUBIC).transpose(2, 0, 1))


def centre_crop_mask(mask: Image.Image, height: int, width: int | None = None) -> UInt8[np.ndarray, "height width"]:
    """The same of a mask: each pixel has the class of the nearest one, because classes cannot be averaged."""
    return _middle(mask, height, width, 1.0, Image.Resampling.NEAREST)


def _middle(
    image: Image.Image, height: int, width: int | None, crop: float, resampling: Image.Resampling
) -> np.ndarray:
    width = height if width is None else width
    least = int(width / crop), int(height / crop)
    factor = max(covered / side for covered, side in zip(least, image.size, strict=True))
    across, down = (max(covered, round(side * factor)) for covered, side in zip(least, image.size, strict=True))
    left, top = (across - width) // 2, (down - height) // 2
    return np.array(image.resize((across, down), resampling).crop((left, top, left + width, top + height)))


def squashed(height: int, width: int) -> Callable[[Image.Image], Tensor]:
    """Bilinear resize that ignores the aspect ratio, then normalisation with ImageNet's mean and deviation.

    Models trained with other statistics (the four ViTs of Table 1 use 0.5/0.5) get these too, as in the study.
    """

    def preprocess(image: Image.Image) -> Tensor:
        pixels = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR), dtype=np.float32) / 255
        normalised = (pixels - IMAGENET_MEAN) / IMAGENET_STD
        return torch.from_numpy(normalised).permute(2, 0, 1).contiguous()

    return preprocess
