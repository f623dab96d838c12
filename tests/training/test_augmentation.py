"""Augmentation on the device: random choices follow the seed, and distortions are Pillow's."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from attnaudit.numerics.randomness import seed_everything
from attnaudit.records.recipe import AugmentationSettings
from attnaudit.training.augmentation import (
    DeviceAugmentation,
    Distortion,
    Operation,
    apply_distortion,
    crop_and_flip,
    distort,
)

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
    return apply_distortion(Distortion(torch.tensor([int(operation)]), torch.tensor([signed])), pixels[None])[0]


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
    assert torch.equal(distort(batch, 0.0), batch)
    changed = (distort(batch, 0.5) != batch).flatten(1).any(dim=1).float().mean()
    assert 0.5 * 11 / 13 - 0.05 < changed < 0.5  # nothing, and now and then an operation too weak to be seen


def test_every_operation_is_drawn_equally_often_with_strengths_of_either_sign():
    torch.manual_seed(0)
    draw = Distortion.random(13_000, 1.0, torch.device("cpu"))
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


def test_a_crop_is_a_window_of_the_padded_image_or_its_mirror_image():
    torch.manual_seed(0)
    pixels = torch.randint(1, 255, (64, 3, 6, 6), dtype=torch.uint8)
    padded = np.pad(pixels.numpy(), ((0, 0), (0, 0), (2, 2), (2, 2)))
    seen = set()
    for number, crop in enumerate(crop_and_flip(pixels, 2).numpy()):
        windows = {
            (top, left, flip): padded[number, :, top : top + 6, left : left + 6][..., :: -1 if flip else 1]
            for top in range(5) for left in range(5) for flip in (False, True)
        }  # fmt: skip
        found = [place for place, window in windows.items() if np.array_equal(window, crop)]
        assert len(found) == 1
        seen.add(found[0])
    assert {flip for _, _, flip in seen} == {False, True}
    assert len(seen) > 20


def test_without_mixup_labels_are_smoothed_probabilities():
    _, targets = DeviceAugmentation(AugmentationSettings(smoothing=0.1), 4, "cpu").mix(
        torch.zeros(2, 3, 4, 4), torch.tensor([1, 3])
    )
    expected = torch.full((2, 4), 0.025)
    expected[0, 1] = expected[1, 3] = 0.925
    torch.testing.assert_close(targets, expected)


@pytest.mark.parametrize(
    "settings", [AugmentationSettings(mixup=0.8), AugmentationSettings(cutmix=1.0), AugmentationSettings(erase=0.9)]
)
def test_random_choices_follow_the_seed(settings):
    augmentation = DeviceAugmentation(settings, 3, "cpu")
    pixels, labels = torch.randint(0, 255, (4, 3, 8, 8), dtype=torch.uint8), torch.tensor([0, 1, 2, 0])
    results = []
    for place in (1, 1, 2):
        seed_everything("here", place)
        results.append(augmentation.mix(augmentation.augment(pixels), labels))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert not torch.equal(results[0][0], results[2][0])


@pytest.mark.parametrize("kind", ["none", "timm"])
def test_the_share_of_distorted_images_is_the_one_asked_for(kind):
    pixels = torch.randint(0, 256, (600, 3, 8, 8), dtype=torch.uint8)
    shares = []
    for share in (0.0, 0.5, 1.0):
        augmentation = DeviceAugmentation(AugmentationSettings(kind=kind, distort=share), 2, "cpu")
        torch.manual_seed(0)
        changed = augmentation.augment(pixels) != augmentation.normalise(pixels)
        shares.append(float(changed.flatten(1).any(dim=1).float().mean()))
    assert shares == pytest.approx([0, 0.5 * 12 / 13, 12 / 13], abs=0.1)  # one of thirteen operations changes nothing


def test_normalised_images_have_imagenets_mean_at_zero():
    augmentation = DeviceAugmentation(AugmentationSettings(), 2, "cpu")
    mean = torch.tensor([0.485, 0.456, 0.406]).mul(255).round().to(torch.uint8).view(1, 3, 1, 1).expand(1, 3, 2, 2)
    assert augmentation.normalise(mean).abs().max() < 0.01
