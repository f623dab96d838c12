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


def centre_crop(image: Image.Image, height: int, width: int | None = None) -> UInt8[np.ndarray, "3 height width"]:
    """Resize the image until it just covers `height` x `width`, a square by default, and crop the middle.

    Nothing is distorted. Training, audits and robustness evaluations all use it, so that their accuracies are
    comparable.
    """
    return np.ascontiguousarray(_covering(image, height, width, Image.Resampling.BICUBIC).transpose(2, 0, 1))


def centre_crop_mask(mask: Image.Image, height: int, width: int | None = None) -> UInt8[np.ndarray, "height width"]:
    """The same of a mask: each pixel has the class of the nearest one, because classes cannot be averaged."""
    return _covering(mask, height, width, Image.Resampling.NEAREST)


def _covering(image: Image.Image, height: int, width: int | None, resampling: Image.Resampling) -> np.ndarray:
    width = height if width is None else width
    factor = max(width / image.width, height / image.height)
    resized = image.resize(
        (max(width, round(image.width * factor)), max(height, round(image.height * factor))), resampling
    )
    left, top = (resized.width - width) // 2, (resized.height - height) // 2
    return np.array(resized.crop((left, top, left + width, top + height)))


def squashed(height: int, width: int) -> Callable[[Image.Image], Tensor]:
    """Bilinear resize that ignores the aspect ratio, then normalisation with ImageNet's mean and deviation.

    Models trained with other statistics (the four ViTs of Table 1 use 0.5/0.5) get these too, as in the study.
    """

    def preprocess(image: Image.Image) -> Tensor:
        pixels = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR), dtype=np.float32) / 255
        normalised = (pixels - IMAGENET_MEAN) / IMAGENET_STD
        return torch.from_numpy(normalised).permute(2, 0, 1).contiguous()

    return preprocess
