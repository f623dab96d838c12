"""Shapes are checked while the tests run; real weights and data come from ATTNAUDIT_DATA."""

import os
import shutil
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from PIL import Image

from tests.clusters import cluster, mortal_cluster, no_scheduler  # noqa: F401 (fixtures for all tests)

SHAPES_CHECKED = [
    "attnaudit.attention.functional",
    "attnaudit.gaussian",
    "attnaudit.kernel",
    "attnaudit.measures",
    "attnaudit.numerics",
    "attnaudit.robustness",
]
if torch.cuda.is_available():
    SHAPES_CHECKED.remove("attnaudit.measures")  # Triton compiles its program there from source, which the hook changes
jaxtyping.install_import_hook(SHAPES_CHECKED, "beartype.beartype")
settings.register_profile(
    "attnaudit",
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.differing_executors],  # shared test cases are run by several subclasses
)
settings.load_profile("attnaudit")
torch.set_num_threads(1)


def pytest_configure(config):
    """Several processes take files in the order below: in that of xdist, most tests first, long files come last."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: "long" not in item.keywords)
    folder = os.environ.get("ATTNAUDIT_DATA")
    if folder and Path(folder).is_dir():
        return
    skip = pytest.mark.skip(reason="ATTNAUDIT_DATA is unset: no real weights and data")
    for item in items:
        if "realdata" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session", autouse=True)
def _elsewhere(tmp_path_factory):
    """Fixtures for several tests run in a folder of their own: a run folder in the checkout would be resumed."""
    os.chdir(tmp_path_factory.mktemp("working-folder"))


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    """So does every test."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data_folder():
    return Path(os.environ["ATTNAUDIT_DATA"])


@pytest.fixture(scope="session")
def six_images(tmp_path_factory):
    """Six small images of noise, in two subfolders, for tests that only read them."""
    generator = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("images")
    for place in range(6):
        path = folder / f"class{place % 2}" / f"image{place}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(generator.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(path)
    return folder


@pytest.fixture
def image_folder(six_images, tmp_path):
    """The same images, to change."""
    return shutil.copytree(six_images, tmp_path / "images")
