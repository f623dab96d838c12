"""Augmentation of pictures together with their masks, for a whole batch on its device."""

from __future__ import annotations

from math import log

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor
from torch.nn import functional

from attnaudit.records.recipe import MaskAugmentationSettings
from attnaudit.sources.preprocess import IMAGENET_MEAN, IMAGENET_STD
from attnaudit.sources.segmented import UNLABELLED

#: What torch's cross-entropy leaves out.
IGNORED = -100
#: Of red, green and blue.
_GREY_WEIGHTS = (0.299, 0.587, 0.114)


class MaskAugmentation:
    """Random scale, place and mirroring for a picture and its mask alike, and random colours for the picture.

    Random choices come from the global generators, so seed them first.
    """

    def __init__(self, settings: MaskAugmentationSettings, device: str) -> None:
        self._settings = settings
        statistics = (torch.from_numpy(numbers) for numbers in (IMAGENET_MEAN, IMAGENET_STD))
        self._mean, self._std = (numbers.view(1, 3, 1, 1).to(device) for numbers in statistics)
        # Made once: moving numbers to the device would make every step wait for the one before it.
        self._grey_weights = torch.tensor(_GREY_WEIGHTS, device=device).view(1, 3, 1, 1)

    def normalise(self, pixels: UInt8[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Bytes to floats, with ImageNet's mean at 0 and its deviation at 1."""
        return (pixels.float() / 255 - self._mean) / self._std

    def __call__(
        self, pixels: UInt8[Tensor, "b 3 h w"], masks: UInt8[Tensor, "b h w"]
    ) -> tuple[Float[Tensor, "b 3 h w"], UInt8[Tensor, "b h w"]]:
        """Normalised pictures, and their masks; both are looked up at the same places."""
        grid = self._places(pixels)
        images = functional.grid_sample(pixels.float(), grid, mode="bilinear", align_corners=False)
        # 0 is what lies outside: numbers are moved so that it means a pixel without a class.
        moved = (masks.float() - UNLABELLED)[:, None]
        classes = functional.grid_sample(moved, grid, mode="nearest", align_corners=False)[:, 0] + UNLABELLED
        return self.normalise(self._coloured(images)), classes.round().to(torch.uint8)

    def _places(self, pixels: Tensor) -> Tensor:
        """Where each pixel of the result is looked up, in units of half a picture: a part of it, or it and more."""
        own, count, device = self._settings, len(pixels), pixels.device
        low, high = log(own.smallest), log(own.largest)
        shown = (-low - (high - low) * torch.rand(count, device=device)).exp()
        room = (1 - shown).abs()  # how far the middle may move, so that the smaller of the two stays inside the larger
        right, down = (room * (2 * torch.rand(count, device=device) - 1) for _ in range(2))
        sign = 1 - 2 * torch.randint(2, (count,), device=device) * own.flip
        none = torch.zeros_like(shown)
        lookup = torch.stack([torch.stack([sign * shown, none, right], 1), torch.stack([none, shown, down], 1)], 1)
        return functional.affine_grid(lookup, list(pixels.shape), align_corners=False)

    def _coloured(self, images: Float[Tensor, "b 3 h w"]) -> UInt8[Tensor, "b 3 h w"]:
        """Brightness, contrast and saturation: towards, or away from, black, uniform and grey."""
        for poorer in (torch.zeros_like, self._uniform, self._grey):
            less = poorer(images)
            factor = 1 + self._settings.colour * (2 * torch.rand(len(images), 1, 1, 1, device=images.device) - 1)
            images = (less + factor * (images - less)).clamp(0, 255)
        return images.round().to(torch.uint8)

    def _grey(self, images: Tensor) -> Tensor:
        return (images * self._grey_weights).sum(dim=1, keepdim=True).expand_as(images)

    def _uniform(self, images: Tensor) -> Tensor:
        return self._grey(images).mean(dim=(1, 2, 3), keepdim=True).expand_as(images)


def targets_of(masks: UInt8[Tensor, "b h w"]) -> Int64[Tensor, "pixels"]:
    """The classes of all pixels, a row for every prediction; those without a class are left out by the loss."""
    classes = masks.flatten().long()
    return classes.masked_fill(classes == UNLABELLED, IGNORED)
