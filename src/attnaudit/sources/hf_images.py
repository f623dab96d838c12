"""Vision models from transformers: which folders hold one, and how its images are prepared."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from PIL import Image
from torch import Tensor

from attnaudit.errors import ModelError, first_line
from attnaudit.protocol import Protocol
from attnaudit.sources.hf_tokenizers import find_file
from attnaudit.sources.preprocess import squashed


def reads_images(transformers: Any, place: str) -> bool:
    """Whether the config of a model has images and no vocabulary; False if there is no config to look into."""
    path = find_file(transformers, place, "config.json")
    try:
        config = {} if path is None else json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):  # `load` says what is wrong with it
        return False
    return isinstance(config, dict) and "vocab_size" not in config and "image_size" in config


def read_processor(transformers: Any, place: str, name: str, **options: Any) -> Any:
    """The image processor of a folder or a hub id.

    Raises:
        ModelError: it is missing or cannot be used.
    """
    if find_file(transformers, place, "preprocessor_config.json") is None:
        raise ModelError(f"{name} has no preprocessor_config.json, which says how its images are prepared: add it.")
    try:
        return transformers.AutoImageProcessor.from_pretrained(place, **options)
    except Exception as error:  # transformers raises whatever an odd value leads to
        raise ModelError(f"The preprocessor_config.json of {name} cannot be used ({first_line(error)}).") from error


def preprocess(processor: Any, size: Any, protocol: Protocol) -> Callable[[Image.Image], Tensor]:
    """How one image is prepared; as in the study, or as the model's own processor does it."""
    if protocol is Protocol.PAPER:
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        return squashed(height, width)

    def prepare(image: Image.Image) -> Tensor:
        pixels: Tensor = processor(images=image, return_tensors="pt")["pixel_values"][0]
        return pixels

    return prepare
