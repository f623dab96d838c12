"""TrivialAugment on the device: one distortion for each image, at a random strength, a whole batch at a time.

Müller & Hutter (2021) draw one of fourteen operations for every image and a strength for it, and find this as good as
what was searched for. Here are thirteen of them, with the ranges that they call RA (shifts are a share of the image):
all but the equalising of histograms, which a batch cannot do at once. Torchvision's, one image after the other, keeps
a small model waiting.
"""

from __future__ import annotations

import enum

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor
from torch.nn import functional

Images = Float[Tensor, "b 3 h w"]
Each = Float[Tensor, "b"]

#: RA's, but for the shift: RA has 10 pixels whatever the size, and this is the share of an image that they are of 32.
_SHEAR, _SHIFT, _TURN, _BLEND = 0.3, 10 / 32, 30.0, 0.9


class Operation(enum.IntEnum):
    """What can happen to an image."""

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


class Draw:
    """An operation and a strength for each image: `signed` between -1 and 1, `size` its absolute value."""

    def __init__(self, operation: Tensor, signed: Each) -> None:
        self._operation, self.signed, self.size = operation, signed, signed.abs()

    @staticmethod
    def random(count: int, share: float, device: torch.device) -> Draw:
        """From the global generator; `share` of the images get an operation at all."""
        operation = torch.randint(len(Operation), (count,), device=device)
        left_alone = torch.rand(count, device=device) >= share
        return Draw(operation.masked_fill(left_alone, Operation.NOTHING), 2 * torch.rand(count, device=device) - 1)

    def gets(self, *operations: Operation) -> Bool[Tensor, "b"]:
        """Which images get one of these."""
        found = self._operation == operations[0]
        for operation in operations[1:]:
            found = found | (self._operation == operation)
        return found

    def where(self, operation: Operation, scale: float) -> Each:
        """`scale` times the signed strength for images that get the operation, 0 for others."""
        return torch.where(self.gets(operation), scale * self.signed, 0.0)


def distorted(pixels: UInt8[Tensor, "b 3 h w"], share: float) -> UInt8[Tensor, "b 3 h w"]:
    """`share` of the images, each through one operation at random, each with a strength of its own."""
    return distorted_by(Draw.random(len(pixels), share, pixels.device), pixels)


def distorted_by(draw: Draw, pixels: UInt8[Tensor, "b 3 h w"]) -> UInt8[Tensor, "b 3 h w"]:
    """Images as they are after what was drawn for them; what comes in from outside is black."""
    images = _bent(draw, pixels.float())
    images = _blended(draw, images)
    images = _quantised(draw, images)
    return images.round().clamp(0, 255).to(torch.uint8)


def _bent(draw: Draw, images: Images) -> Images:
    """The affine operations: where each pixel of the result is looked up, in units of half an image."""
    angle = torch.deg2rad(draw.where(Operation.ROTATE, _TURN))
    cosine, sine = angle.cos(), angle.sin()
    rows = (
        (cosine, draw.where(Operation.SHEAR_X, _SHEAR) - sine, draw.where(Operation.SHIFT_X, 2 * _SHIFT)),
        (draw.where(Operation.SHEAR_Y, _SHEAR) + sine, cosine, draw.where(Operation.SHIFT_Y, 2 * _SHIFT)),
    )
    lookup = torch.stack([torch.stack(row, dim=1) for row in rows], dim=1)
    grid = functional.affine_grid(lookup, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, mode="bilinear", align_corners=False)


def _blended(draw: Draw, images: Images) -> Images:
    """The operations that blend an image with, or carry it away from, a poorer one: black, grey, plain, smooth."""
    red, green, blue = (images[:, place, None] for place in range(3))
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    around = functional.avg_pool2d(functional.pad(images, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    smooth = (9 * around + 4 * images) / 13  # PIL's: eight neighbours count 1, the pixel itself 5
    poorer = torch.where(_wide(draw.gets(Operation.BRIGHTNESS)), 0.0, smooth)
    poorer = torch.where(_wide(draw.gets(Operation.COLOUR)), grey, poorer)
    poorer = torch.where(_wide(draw.gets(Operation.CONTRAST)), grey.mean(dim=(1, 2, 3), keepdim=True), poorer)
    blending = draw.gets(Operation.BRIGHTNESS, Operation.COLOUR, Operation.CONTRAST, Operation.SHARPNESS)
    factor = _wide(1 + torch.where(blending, _BLEND * draw.signed, 0.0))
    return (poorer + factor * (images - poorer)).clamp(0, 255)


def _quantised(draw: Draw, images: Images) -> Images:
    """The operations that look at the value of a pixel alone: fewer bits, inverted above a threshold, stretched."""
    images = images.round()  # a lookup is off by a rounding error, and 127.99999 would lose a whole step
    step = _wide(2 ** (4 * draw.size).round())
    images = torch.where(_wide(draw.gets(Operation.POSTERISE)), (images / step).floor() * step, images)
    inverted = torch.where(images >= _wide(256 * (1 - draw.size)), 255 - images, images)
    images = torch.where(_wide(draw.gets(Operation.SOLARISE)), inverted, images)
    low, high = images.amin(dim=(2, 3), keepdim=True), images.amax(dim=(2, 3), keepdim=True)
    stretched = torch.where(high > low, (images - low) * 255 / (high - low).clamp(min=1), images)
    return torch.where(_wide(draw.gets(Operation.AUTOCONTRAST)), stretched, images)


def _wide(each: Tensor) -> Tensor:
    return each.view(-1, 1, 1, 1)
