"""Augmentation of training images: timm's transform for one image, and the augmentation of a whole batch on its device.

On the device a batch goes through crop and flip, distortion, normalisation, timm's erasing, mixup and cutmix. The
distortion is TrivialAugment (Müller & Hutter 2021): for every image, one of fourteen operations at random and a random
strength. Here are thirteen of them, with the ranges that the paper calls RA, for a whole batch at once, because
Torchvision's, image by image, keep a small model waiting; a batch cannot equalise histograms.
"""

from __future__ import annotations

import enum
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor
from torch.nn import functional

from attnaudit.errors import UsageError, first_line
from attnaudit.extras import optional
from attnaudit.records.recipe import AugmentationSettings
from attnaudit.sources.preprocess import IMAGENET_MEAN, IMAGENET_STD

Images = Float[Tensor, "b 3 h w"]
PerImage = Float[Tensor, "b"]

#: RA's ranges, except for shifts: RA has 10 pixels for every size, this is their share of an image of 32.
_SHEAR, _SHIFT, _TURN, _BLEND = 0.3, 10 / 32, 30.0, 0.9


def timm_transform(settings: AugmentationSettings, size: int) -> Any:
    """Timm's random transform of an image to bytes of `size` x `size`.

    Raises:
        UsageError: timm has no such transform.
    """
    try:
        return optional("timm.data", "timm", "Training").create_transform(
            size,
            is_training=True,
            use_prefetcher=True,
            color_jitter=settings.colour_jitter,
            auto_augment=settings.auto_augment,
            interpolation="bicubic",
        )
    except (AssertionError, LookupError, ValueError) as error:
        raise UsageError(
            f"augmentation: timm has no transform with auto_augment {settings.auto_augment!r} and colour_jitter "
            f"{settings.colour_jitter:g} ({first_line(error)}); rand-m9-mstd0.5-inc1 and 0.3 are valid, for example."
        ) from error


class DeviceAugmentation:
    """Augmentation of a batch; random choices come from the global generators, as timm's do, so seed them first."""

    def __init__(self, settings: AugmentationSettings, classes: int, device: str) -> None:
        self._padding = settings.padding if settings.kind == "crop-flip" else None
        self._distort = settings.distort
        statistics = (torch.from_numpy(numbers) for numbers in (IMAGENET_MEAN, IMAGENET_STD))
        self._mean, self._std = (numbers.view(1, 3, 1, 1).to(device) for numbers in statistics)
        timm = optional("timm.data", "timm", "Training")
        erasing = optional("timm.data.random_erasing", "timm", "Training").RandomErasing
        self._erase = erasing(settings.erase, mode="pixel", device=device) if settings.erase else None
        self._mix = (
            timm.Mixup(
                settings.mixup,
                settings.cutmix,
                prob=settings.mix_share,
                label_smoothing=settings.smoothing,
                num_classes=classes,
            )
            if settings.mixes
            else None
        )
        self._smoothing, self._classes = settings.smoothing, classes

    def normalise(self, pixels: UInt8[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Bytes to floats, with ImageNet's mean at 0 and its deviation at 1."""
        return (pixels.float() / 255 - self._mean) / self._std

    def augment(self, pixels: UInt8[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Augment each image by itself."""
        if self._padding is not None:
            pixels = crop_and_flip(pixels, self._padding)
        if self._distort:
            pixels = distort(pixels, self._distort)
        images = self.normalise(pixels)
        return images if self._erase is None else self._erase(images)

    def mix(
        self, images: Float[Tensor, "b 3 h w"], labels: Int64[Tensor, "b"]
    ) -> tuple[Float[Tensor, "b 3 h w"], Float[Tensor, "b classes"]]:
        """Blend images in pairs, with labels as probabilities; without mixup and cutmix, only smooth the labels."""
        if self._mix is not None:
            images, targets = self._mix(images, labels)
            return images, targets
        smooth = self._smoothing / self._classes
        targets = torch.full((len(labels), self._classes), smooth, device=labels.device)
        return images, targets.scatter_(1, labels[:, None], 1 - self._smoothing + smooth)


def crop_and_flip(pixels: UInt8[Tensor, "b 3 h w"], padding: int) -> UInt8[Tensor, "b 3 h w"]:
    """Pad each image with black, crop it at a random position, and mirror half of them."""
    (count, _, height, width), device = pixels.shape, pixels.device
    padded = functional.pad(pixels, (padding,) * 4)
    # Drawn on the device: moving numbers there would make every step wait for the one before it.
    top, left, flip = (torch.randint(high, (count, 1), device=device) for high in (2 * padding + 1, 2 * padding + 1, 2))
    columns = torch.arange(width, device=device).expand(count, width)
    columns = left + torch.where(flip.bool(), columns.flip(1), columns)
    rows = top + torch.arange(height, device=device)
    image = torch.arange(count, device=device)[:, None, None]
    return padded[image, :, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2)


class Operation(enum.IntEnum):
    """The distortions of an image."""

    NOTHING = 0
    SHEAR_X = 1
    SHEAR_Y = 2
    SHIFT_X = 3
    SHIFT_Y = 4
    ROTATE = 5
    BRIGHTNESS = 6
    COLOUR = 7
    CONTRAST = 8
    SHARPNESS = 9
    POSTERISE = 10
    SOLARISE = 11
    AUTOCONTRAST = 12


class Distortion:
    """An operation and a strength for each image: `signed` is between -1 and 1, `size` is its absolute value."""

    def __init__(self, operation: Tensor, signed: PerImage) -> None:
        self._operation, self.signed, self.size = operation, signed, signed.abs()

    @staticmethod
    def random(count: int, share: float, device: torch.device) -> Distortion:
        """Drawn from the global generator; only a `share` of the images get an operation."""
        operation = torch.randint(len(Operation), (count,), device=device)
        unchanged = torch.rand(count, device=device) >= share
        return Distortion(operation.masked_fill(unchanged, Operation.NOTHING), 2 * torch.rand(count, device=device) - 1)

    def gets(self, *operations: Operation) -> Bool[Tensor, "b"]:
        """Whether each image gets one of these operations."""
        found = self._operation == operations[0]
        for operation in operations[1:]:
            found = found | (self._operation == operation)
        return found

    def where(self, operation: Operation, scale: float) -> PerImage:
        """`scale` times the signed strength for images that get the operation, else 0."""
        return torch.where(self.gets(operation), scale * self.signed, 0.0)


def distort(pixels: UInt8[Tensor, "b 3 h w"], share: float) -> UInt8[Tensor, "b 3 h w"]:
    """Apply a random operation of random strength to each of a `share` of the images."""
    return apply_distortion(Distortion.random(len(pixels), share, pixels.device), pixels)


def apply_distortion(draw: Distortion, pixels: UInt8[Tensor, "b 3 h w"]) -> UInt8[Tensor, "b 3 h w"]:
    """Apply the operation drawn for each image; pixels from outside an image are black."""
    images = _transform_geometry(draw, pixels.float())
    images = _blend(draw, images)
    images = _change_values(draw, images)
    return images.round().clamp(0, 255).to(torch.uint8)


def _transform_geometry(draw: Distortion, images: Images) -> Images:
    """The affine operations: the position at which each pixel of the result is looked up, in units of half an image."""
    angle = torch.deg2rad(draw.where(Operation.ROTATE, _TURN))
    cosine, sine = angle.cos(), angle.sin()
    rows = (
        (cosine, draw.where(Operation.SHEAR_X, _SHEAR) - sine, draw.where(Operation.SHIFT_X, 2 * _SHIFT)),
        (draw.where(Operation.SHEAR_Y, _SHEAR) + sine, cosine, draw.where(Operation.SHIFT_Y, 2 * _SHIFT)),
    )
    lookup = torch.stack([torch.stack(row, dim=1) for row in rows], dim=1)
    grid = functional.affine_grid(lookup, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, mode="bilinear", align_corners=False)


def _blend(draw: Distortion, images: Images) -> Images:
    """The operations that interpolate to, or extrapolate from, a poorer image: black, grey, uniform or smooth."""
    red, green, blue = (images[:, place, None] for place in range(3))
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    around = functional.avg_pool2d(functional.pad(images, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    smooth = (9 * around + 4 * images) / 13  # PIL's: eight neighbours have weight 1, the pixel itself 5
    poorer = torch.where(_wide(draw.gets(Operation.BRIGHTNESS)), 0.0, smooth)
    poorer = torch.where(_wide(draw.gets(Operation.COLOUR)), grey, poorer)
    poorer = torch.where(_wide(draw.gets(Operation.CONTRAST)), grey.mean(dim=(1, 2, 3), keepdim=True), poorer)
    blending = draw.gets(Operation.BRIGHTNESS, Operation.COLOUR, Operation.CONTRAST, Operation.SHARPNESS)
    factor = _wide(1 + torch.where(blending, _BLEND * draw.signed, 0.0))
    return (poorer + factor * (images - poorer)).clamp(0, 255)


def _change_values(draw: Distortion, images: Images) -> Images:
    """The operations on the value of a pixel: fewer bits, inversion above a threshold, stretched contrast."""
    images = images.round()  # a lookup has rounding errors, and 127.99999 would lose a whole step
    step = _wide(2 ** (4 * draw.size).round())
    images = torch.where(_wide(draw.gets(Operation.POSTERISE)), (images / step).floor() * step, images)
    inverted = torch.where(images >= _wide(256 * (1 - draw.size)), 255 - images, images)
    images = torch.where(_wide(draw.gets(Operation.SOLARISE)), inverted, images)
    low, high = images.amin(dim=(2, 3), keepdim=True), images.amax(dim=(2, 3), keepdim=True)
    stretched = torch.where(high > low, (images - low) * 255 / (high - low).clamp(min=1), images)
    return torch.where(_wide(draw.gets(Operation.AUTOCONTRAST)), stretched, images)


def _wide(each: Tensor) -> Tensor:
    return each.view(-1, 1, 1, 1)
