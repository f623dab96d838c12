"""A data set of sixty tiny images in which the class is the brighter half, and a recipe that learns it quickly."""

import io
import socket

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from attnaudit.sources.labelled import training_and_test

SIZE = 8


def tiny_image(label, generator):
    pixels = generator.integers(0, 100, (SIZE, SIZE, 3), dtype=np.uint8)
    rows = slice(0, SIZE // 2) if label else slice(SIZE // 2, SIZE)
    pixels[rows] += 120
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return {"bytes": buffer.getvalue(), "path": None}


def write_images(path, labels, seed=0):
    generator = np.random.default_rng(seed)
    images = [tiny_image(label, generator) for label in labels]
    pq.write_table(pa.table({"img": images, "label": list(labels)}), path)


@pytest.fixture
def data_set(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    write_images(folder / "train.parquet", [0, 1] * 20)
    write_images(folder / "test.parquet", [0, 1] * 10, seed=1)
    return folder


@pytest.fixture
def halves(data_set):
    return training_and_test(data_set)


RECIPE = """
name: tiny
model: {image_size: 8, patch_size: 4, width: 24, depth: 2, heads: 2, drop_path: 0.2}
epochs: 3
batch: 8
precision: fp32
optimiser: {rate: 3e-3, warmup_epochs: 1, clip: 1.0}
augmentation: {kind: crop-flip, padding: 1, erase: 0.3, mixup: 0.8, cutmix: 1.0, mix_share: 0.5}
average: 0.9
monitor: {images: 4, scores: 1}
"""


@pytest.fixture
def recipe_file(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(RECIPE)
    return path


@pytest.fixture
def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
