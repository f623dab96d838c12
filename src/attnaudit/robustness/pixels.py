"""A model that takes pixel values between 0 and 1 and normalises them itself, so that ε is in pixel values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from PIL import Image
from torch import Tensor

from attnaudit.errors import ModelError
from attnaudit.numerics.digest import content_digest
from attnaudit.numerics.precision import autocast
from attnaudit.protocol import Protocol
from attnaudit.records.card import ImageCard
from attnaudit.sources.model import LoadedModel

_ANY_SIZE = (256, 256)


def _noise() -> Image.Image:
    """An image of noise, wider than high, so that cropping and squashing differ."""
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (192, 256, 3), dtype=np.uint8))


class PixelModel:
    """A network that classifies or segments images, on a device.

    Mean and deviation are derived from the preprocessing of a black and a white image, which works for every source.
    `preprocessing_digest` is a hash of a preprocessed image of noise, equal for models with equal preprocessing.
    `class_names` are those of the outputs, where they have any.

    Args:
        loaded: the model.
        device: the device.
        precision: `fp32`, `tf32` (see `matmul_precision`), or `bf16` for products in bfloat16; pixels, gradients and
            logits are always float32.
        mask: the outputs to use, in this order; all by default.
        compiled: whether to use `torch.compile`, for batches of any size; it changes logits by rounding only.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        device: str = "cpu",
        precision: str = "fp32",
        mask: Int64[Tensor, "classes"] | None = None,
        *,
        compiled: bool = False,
    ) -> None:
        if loaded.preprocess is None:
            raise ModelError(f"{loaded.label} has no preprocessing for images: give a vision model.")
        self.label, self.fingerprint = loaded.label, loaded.fingerprint
        self.class_names = loaded.card.labels if isinstance(loaded.card, ImageCard) else None
        self.device, self.precision = torch.device(device), precision
        self._preprocess = loaded.preprocess(Protocol.EXACT)
        black, white = (self._preprocess(Image.new("RGB", _ANY_SIZE, colour)) for colour in ("black", "white"))
        self.size = (black.shape[1], black.shape[2])
        deviation = 1 / (white - black)[:, :1, :1]
        self._mean, self._deviation = -black[:, :1, :1] * deviation, deviation
        self.mean, self.deviation = self._mean.to(self.device), self._deviation.to(self.device)
        self.preprocessing_digest = content_digest([self.pixels(_noise()).numpy().tobytes()])
        self.module = loaded.module.to(self.device).eval().requires_grad_(False)
        self.mask = None if mask is None else mask.to(self.device)
        self._called: Any = torch.compile(self.module, dynamic=True) if compiled else self.module

    def __call__(self, pixels: Float[Tensor, "images 3 height width"]) -> Float[Tensor, "images *places classes"]:
        """The logits for pixel values between 0 and 1: of every image, or of every pixel."""
        return self.on_normalised(self.normalised(pixels))

    def on_normalised(self, images: Tensor) -> Tensor:
        """The logits for normalised pixels."""
        return self._logits(self._called, images)

    def _logits(self, network: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
        with autocast(self.device, self.precision):
            logits = network(images)
        return logits.float() if self.mask is None else logits.float()[..., self.mask]

    def normalised(self, pixels: Tensor) -> Tensor:
        """(x - mean) / deviation."""
        return (pixels - self.mean) / self.deviation

    @property
    def outputs(self) -> int:
        """The number of outputs that are used."""
        return self._output_shape[-1]

    @property
    def segments(self) -> bool:
        """Whether it names every pixel, and not the image."""
        return len(self._output_shape) > 1

    @cached_property
    def _output_shape(self) -> tuple[int, ...]:
        """Of one image: classes, for pixels after height and width."""
        with torch.no_grad():  # not compiled, which for a batch of one would be for it alone
            found = tuple(self._logits(self.module, torch.zeros(1, 3, *self.size, device=self.device)).shape)
        if len(found) != 2 and found[1:-1] != self.size:
            raise ModelError(f"{self.label} is not a classifier: for one image its output has shape {found}.")
        return found[1:]

    def pixels(self, image: Image.Image, *, preprocessed: bool = False) -> UInt8[Tensor, "3 height width"]:
        """The pixels of an image after the model's preprocessing, which resizes and crops it.

        `preprocessed` images of the right size are returned unchanged: those of ImageNet-C were resized before they
        were corrupted, and resizing them again would soften the corruption.
        """
        if preprocessed and image.size == self.size[::-1]:
            return torch.from_numpy(np.array(image)).permute(2, 0, 1)
        pixels = self._preprocess(image) * self._deviation + self._mean
        return (pixels * 255).round().clamp(0, 255).to(torch.uint8)
