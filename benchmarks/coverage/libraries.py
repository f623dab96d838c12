"""The libraries whose models are measured."""

from __future__ import annotations

from importlib.util import find_spec

from benchmarks.coverage.case import Library
from benchmarks.coverage.hugging_face.library import Transformers
from benchmarks.coverage.open_clip_models import OpenClip
from benchmarks.coverage.timm_models import Timm
from benchmarks.coverage.torchvision_models import Torchvision
from benchmarks.coverage.vit_pytorch_models import VitPytorch
from benchmarks.coverage.x_transformers_models import XTransformers

_ALL: tuple[Library, ...] = (Timm(), Transformers(), Torchvision(), OpenClip(), VitPytorch(), XTransformers())

LIBRARIES: dict[str, Library] = {library.name: library for library in _ALL}


def missing(library: Library) -> list[str]:
    """The packages of a library that are not installed."""
    return [package for package in library.packages if find_spec(package) is None]
