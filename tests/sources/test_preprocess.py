"""How images become pixels: nothing is distorted, and edges are those of a cubic."""

import numpy as np
import pytest
from PIL import Image

from attnaudit.sources.preprocess import centre_crop, centre_crop_mask


def test_pixels_between_pixels_are_cubic():
    """The cubic of Keys (1981), a = -1/2, has w(1/4, 3/4, 5/4, 7/4) = (111, 29, -9, -3)/128: an edge overshoots."""
    dark, step = 64, 128
    row = np.repeat(np.array([dark, dark + step], dtype=np.uint8), 4)
    image = Image.fromarray(np.broadcast_to(row[None, :, None], (8, 8, 3)).copy())
    before_the_edge = [dark + step * weight // 128 for weight in (-3, -3 - 9 + 3, 29 - 3)]
    assert centre_crop(image, 16)[0, 0, 5:8].tolist() == before_the_edge


@pytest.mark.parametrize("size", [(12, 5), (5, 12), (5, 5), (3, 3), (999, 2)])
def test_pixels_are_square_and_of_the_size_wanted(size):
    assert centre_crop(Image.new("RGB", size), 4).shape == (3, 4, 4)


def test_a_image_of_the_right_size_is_left_as_it_is():
    pixels = np.random.default_rng(0).integers(0, 256, (6, 6, 3), dtype=np.uint8)
    assert np.array_equal(centre_crop(Image.fromarray(pixels), 6), pixels.transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("size", "kept"), [((40, 12), (slice(None), slice(8, 32))), ((24, 30), (slice(9, 21), slice(None)))]
)
def test_what_is_not_square_is_cut_in_the_middle_of_the_longer_side_picture_and_mask_alike(size, kept):
    """A crop of 12 x 24 pixels from images that cover it without being resized."""
    width, height = size
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    assert np.array_equal(centre_crop(Image.fromarray(pixels), 12, 24), pixels[kept].transpose(2, 0, 1))
    assert np.array_equal(centre_crop_mask(Image.fromarray(pixels[..., 0]), 12, 24), pixels[..., 0][kept])


def test_a_mask_that_is_resized_has_no_new_classes():
    mask = np.random.default_rng(0).choice(np.array([0, 7, 255], dtype=np.uint8), (9, 11))
    assert set(np.unique(centre_crop_mask(Image.fromarray(mask), 20, 30))) <= {0, 7, 255}
