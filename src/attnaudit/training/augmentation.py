"""What happens to a batch on the device: crop, flip and distortion, normalisation, timm's erasing, mixup, cutmix."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor
from torch.nn import functional

from attnaudit.extras import optional
from attnaudit.records.recipe import AugmentationSettings
from attnaudit.sources.preprocess import IMAGENET_MEAN, IMAGENET_STD
from attnaudit.training.distortion import distorted


class DeviceAugmentation:
    """Random choices come from the global generators, as timm's do: seed them first."""

    def __init__(self, wishes: AugmentationSettings, classes: int, device: str) -> None:
        self._crop = wishes.padding if wishes.kind == "crop-flip" else None
        self._distort = wishes.distort
        statistics = (torch.from_numpy(numbers) for numbers in (IMAGENET_MEAN, IMAGENET_STD))
        self._mean, self._std = (numbers.view(1, 3, 1, 1).to(device) for numbers in statistics)
        timm = optional("timm.data", "timm", "Training")
        erasing = optional("timm.data.random_erasing", "timm", "Training").RandomErasing
        self._erase = erasing(wishes.erase, mode="pixel", device=device) if wishes.erase else None
        self._mix = (
            timm.Mixup(
                wishes.mixup,
                wishes.cutmix,
                prob=wishes.mix_share,
                label_smoothing=wishes.smoothing,
                num_classes=classes,
            )
            if wishes.mixes
            else None
        )
        self._smoothing, self._classes = wishes.smoothing, classes

    def normalised(self, pixels: UInt8[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Bytes to floats of ImageNet's mean 0 and deviation 1."""
        return (pixels.float() / 255 - self._mean) / self._std

    def augmented(self, pixels: UInt8[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Each image by itself."""
        if self._crop is not None:
            pixels = crop_and_flip(pixels, self._crop)
        if self._distort:
            pixels = distorted(pixels, self._distort)
        images = self.normalised(pixels)
        return images if self._erase is None else self._erase(images)

    def mixed(
        self, images: Float[Tensor, "b 3 h w"], labels: Int64[Tensor, "b"]
    ) -> tuple[Float[Tensor, "b 3 h w"], Float[Tensor, "b classes"]]:
        """Images blended in pairs, with their labels as probabilities; only smoothed labels without mixup."""
        if self._mix is not None:
            images, targets = self._mix(images, labels)
            return images, targets
        smooth = self._smoothing / self._classes
        targets = torch.full((len(labels), self._classes), smooth, device=labels.device)
        return images, targets.scatter_(1, labels[:, None], 1 - self._smoothing + smooth)


def crop_and_flip(pixels: UInt8[Tensor, "b 3 h w"], padding: int) -> UInt8[Tensor, "b 3 h w"]:
    """Each image padded with black, cut at a place of its own, and mirrored half of the time."""
    (count, _, height, width), device = pixels.shape, pixels.device
    padded = functional.pad(pixels, (padding,) * 4)
    # Drawn on the device: numbers that travel there would make every step wait for the one before it.
    top, left, flip = (torch.randint(high, (count, 1), device=device) for high in (2 * padding + 1, 2 * padding + 1, 2))
    columns = torch.arange(width, device=device).expand(count, width)
    columns = left + torch.where(flip.bool(), columns.flip(1), columns)
    rows = top + torch.arange(height, device=device)
    image = torch.arange(count, device=device)[:, None, None]
    return padded[image, :, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2)
