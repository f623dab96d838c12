"""What `benchmarks/gpu_audit.py` makes of what it measures."""

import numpy as np
import pytest
from benchmarks.gpu_audit import filled, relative, union
from PIL import Image


@pytest.mark.parametrize(
    ("intervals", "length"),
    [
        ([], 0),
        ([(0, 2), (5, 6)], 3),
        ([(0, 4), (1, 2), (3, 5)], 5),
        ([(3, 4), (0, 1), (0, 1)], 2),
    ],
)
def test_overlapping_kernels_count_once(intervals, length):
    assert union(intervals) == length


def test_differences_are_relative_to_the_larger_number():
    assert np.allclose(relative([1.0, 0.0, -2.0, 1e-300], [2.0, 0.0, -2.0, 0.0]), [0.5, 0.0, 0.0, 1.0])


def test_a_folder_is_filled_up_with_other_images(tmp_path):
    given = tmp_path / "given"
    given.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), dtype=np.uint8)
    for number, own in enumerate(pixels):
        Image.fromarray(own).save(given / f"{number}.png")
    made = sorted(filled(given, 7, tmp_path / "filled").iterdir())
    assert len(made) == 7
    assert len({path.read_bytes() for path in made}) == 7
    assert filled(given, 2, tmp_path / "unused") == given
