"""Tiny trainings: of sixty images whose class is the brighter half, of masks of it, and of a text of one line."""

import io
import socket
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from attnaudit.sources.labelled import training_and_test
from attnaudit.training import read_data, read_recipe
from tests.sources.masks import without_labels, write_masks

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


def find_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def free_port():
    return find_port()


MASK_RECIPE = """
name: tiny
task: segmentation
model: {image_size: 32, image_width: 48, patch_size: 8, width: 24, depth: 2, heads: 2, classes: 2, drop_path: 0.2,
        decoder: linear}
epochs: 3
batch: 4
precision: fp32
optimiser: {rate: 3e-3, warmup_epochs: 1, clip: 1.0}
average: 0.9
monitor: {images: 4, scores: 1}
"""


@pytest.fixture
def mask_recipe_file(tmp_path):
    path = tmp_path / "tiny-masks.yaml"
    path.write_text(MASK_RECIPE)
    return path


@pytest.fixture
def mask_set(tmp_path):
    folder = tmp_path / "masks"
    folder.mkdir()
    write_masks(folder / "train.parquet", 16)
    write_masks(folder / "test.parquet", 6, first=20)
    return folder


TEXT_RECIPE = """
name: tiny
task: text
model:
  context: 8
  width: 16
  depth: 2
  heads: 2
  dropout: 0.1
  attention: rpc
  attention_layers: [0]
  attention_options: {iterations: 2}
  other_attention: symmetric
min_count: 1
swap_rate: 0.5
epochs: 3
batch: 4
precision: fp32
optimiser: {rate: 1e-2, warmup_epochs: 1, clip: 1.0}
average: 0.9
monitor: {contexts: 3, scores: 1}
"""
LINE = "one two three four five six seven eight nine ten\n"


@pytest.fixture
def text_recipe_file(tmp_path):
    path = tmp_path / "tiny-text.yaml"
    path.write_text(TEXT_RECIPE)
    return path


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "train.txt").write_text(LINE * 20)
    (folder / "test.txt").write_text(LINE * 7 + "one two two four unheard\n")
    return folder


@dataclass(frozen=True)
class Case:
    """A tiny recipe and its data.

    `plain` are changes without random choices of a rank, so that two ranks train what one process trains; Adam would
    make steps of rounding errors where a gradient is 0. `scores` are compared with their relative tolerance.
    """

    recipe_file: Path
    folder: Path
    unmonitored: str
    plain: tuple[str, ...]
    scores: dict[str, float]

    def recipe(self, *changes):
        return read_recipe(str(self.recipe_file), changes)

    @property
    def data(self):
        return read_data(self.recipe(), self.folder)


SGD = ("epochs=2", "optimiser.name=sgd", "optimiser.rate=0.1")
NO_AUGMENTATION = tuple(f"augmentation.{change}" for change in ("kind=none", "erase=0", "mixup=0", "cutmix=0"))

UNCHANGED = ("smallest=1", "largest=1", "flip=false", "colour=0")


@pytest.fixture(params=["images", "segmentation", "text"])
def case(request):
    if request.param == "images":
        file, folder = (request.getfixturevalue(name) for name in ("recipe_file", "data_set"))
        plain = (*SGD, "model.drop_path=0", *NO_AUGMENTATION)
        return Case(file, folder, "monitor.images=0", plain, {"test_accuracy": 0.0})
    if request.param == "segmentation":
        file, folder = (request.getfixturevalue(name) for name in ("mask_recipe_file", "mask_set"))
        plain = (*SGD, "model.drop_path=0", *(f"augmentation.{change}" for change in UNCHANGED))
        without_labels(folder / "train.parquet", [1, 4, 5, 11])  # so that two processes see unequal shares of them
        without_labels(folder / "test.parquet", [1])
        scores = dict.fromkeys(("test_loss", "test_mean_iou", "test_pixel_accuracy"), 1e-3)
        return Case(file, folder, "monitor.images=0", plain, scores)
    file, folder = (request.getfixturevalue(name) for name in ("text_recipe_file", "corpus"))
    names = ("test_perplexity", "test_perplexity_low", "swapped_perplexity")
    plain = (*SGD, "model.dropout=0", "average=null")
    return Case(file, folder, "monitor.contexts=0", plain, dict.fromkeys(names, 1e-4))
