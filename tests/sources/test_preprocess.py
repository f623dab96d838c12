"""How images become pixels: nothing is distorted, and edges are those of a cubic."""

import numpy as np
import pytest
from PIL import Image

from attnaudit.sources.preprocess import centre_crop


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
