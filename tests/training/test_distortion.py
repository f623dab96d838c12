"""TrivialAugment's distortions, held against Pillow's on one image at a time."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from attnaudit.training.distortion import Draw, Operation, distorted, distorted_by

SIGNED = (-0.8, -0.3, 0.4, 0.9)


@pytest.fixture(scope="module", params=[32, 33, 64])
def pixels(request):
    """Smooth enough that bilinear and nearest agree, with colours and full range.

    Sizes other than 32 are looked up at places that are rounded, and so a hair away from the pixels.
    """
    steps = torch.linspace(0, 1, request.param)
    down, across = torch.meshgrid(steps, steps, indexing="ij")
    planes = torch.stack([down, across, (2 * (down - across)).abs().clamp(max=1)]) * 200 + 20
    return planes.round().to(torch.uint8)


def ours(operation, signed, pixels):
    return distorted_by(Draw(torch.tensor([int(operation)]), torch.tensor([signed])), pixels[None])[0]


def image(pixels):
    return Image.fromarray(pixels.permute(1, 2, 0).numpy())


def from_image(image):
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)


@pytest.mark.parametrize(
    ("operation", "enhancement"),
    [
        (Operation.BRIGHTNESS, ImageEnhance.Brightness),
        (Operation.COLOUR, ImageEnhance.Color),
        (Operation.CONTRAST, ImageEnhance.Contrast),
        (Operation.SHARPNESS, ImageEnhance.Sharpness),
    ],
)
@pytest.mark.parametrize("signed", SIGNED)
def test_blending_operations_are_pillows(pixels, operation, enhancement, signed):
    wanted = from_image(enhancement(image(pixels)).enhance(1 + 0.9 * signed))
    inside = (slice(None), slice(1, -1), slice(1, -1))  # Pillow does not smooth the border
    difference = ours(operation, signed, pixels)[inside].float() - wanted[inside].float()
    assert difference.abs().max() <= 2  # Pillow rounds grey and smooth images to bytes first
    assert (wanted != pixels).any()


def test_value_operations_are_pillows(pixels):
    for signed in SIGNED:
        kept = 8 - round(4 * abs(signed))
        assert torch.equal(
            ours(Operation.POSTERISE, signed, pixels), from_image(ImageOps.posterize(image(pixels), kept))
        )
        threshold = 256 * (1 - abs(signed))
        assert torch.equal(
            ours(Operation.SOLARISE, signed, pixels), from_image(ImageOps.solarize(image(pixels), threshold))
        )
    stretched = from_image(ImageOps.autocontrast(image(pixels))).float()
    assert (ours(Operation.AUTOCONTRAST, 0.5, pixels).float() - stretched).abs().max() <= 1


def test_a_plain_image_has_no_contrast_to_stretch():
    plain = torch.full((3, 8, 8), 77, dtype=torch.uint8)
    assert torch.equal(ours(Operation.AUTOCONTRAST, 1.0, plain), plain)


@pytest.mark.parametrize("signed", SIGNED)
def test_affine_operations_are_pillows_inside_the_image(pixels, signed):
    """Pillow's matrix, like ours, says where each pixel of the result is looked up; its origin is the corner."""
    size = pixels.shape[-1]
    centre = size / 2
    turn = np.deg2rad(30 * signed)
    linear = {
        Operation.SHEAR_X: ((1, 0.3 * signed), (0, 1)),
        Operation.SHEAR_Y: ((1, 0), (0.3 * signed, 1)),
        Operation.ROTATE: ((np.cos(turn), -np.sin(turn)), (np.sin(turn), np.cos(turn))),
        Operation.SHIFT_X: ((1, 0), (0, 1)),
        Operation.SHIFT_Y: ((1, 0), (0, 1)),
    }
    most = 10 / 32 * size * signed
    shift = {Operation.SHIFT_X: (most, 0), Operation.SHIFT_Y: (0, most)}
    for operation, ((a, b), (d, e)) in linear.items():
        x, y = shift.get(operation, (0, 0))
        data = (a, b, centre - a * centre - b * centre + x, d, e, centre - d * centre - e * centre + y)
        wanted = from_image(
            image(pixels).transform((size, size), Image.Transform.AFFINE, data, resample=Image.Resampling.BILINEAR)
        )
        found = ours(operation, signed, pixels)
        down, across = torch.meshgrid(torch.arange(size) + 0.5, torch.arange(size) + 0.5, indexing="ij")
        looked_up = torch.stack([a * across + b * down + data[2], d * across + e * down + data[5]])
        inside = ((looked_up > 1) & (looked_up < size - 1)).all(dim=0)  # both fade out at the border in their own way
        assert inside.float().mean() > 0.4
        assert (found.float() - wanted.float()).abs()[:, inside].max() <= 1, operation.name
        assert not torch.equal(found, pixels)


def test_every_image_gets_its_own_operation_and_the_share_is_kept():
    torch.manual_seed(0)
    batch = torch.randint(0, 256, (4000, 3, 8, 8), dtype=torch.uint8)
    assert torch.equal(distorted(batch, 0.0), batch)
    changed = (distorted(batch, 0.5) != batch).flatten(1).any(dim=1).float().mean()
    assert 0.5 * 11 / 13 - 0.05 < changed < 0.5  # nothing, and now and then an operation too weak to be seen


def test_every_operation_is_drawn_equally_often_with_strengths_of_either_sign():
    torch.manual_seed(0)
    draw = Draw.random(13_000, 1.0, torch.device("cpu"))
    for operation in Operation:
        own = draw.signed[draw.gets(operation)]
        assert 800 < len(own) < 1200, operation.name  # a thousand, with a deviation of 30
        assert len(own.unique()) > 0.99 * len(own)
        torch.testing.assert_close(
            own.quantile(torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])),
            torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0]),
            atol=0.1,
            rtol=0,
        )
