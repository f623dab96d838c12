"""Models that `attnaudit train` made: a folder with `card.json` and `model.safetensors`, and one that ships."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from attnaudit.errors import ModelError
from attnaudit.protocol import Protocol
from attnaudit.sources.architecture import Architecture, build
from attnaudit.sources.model import CARD, LoadedModel, ModelSpec, Preprocess
from attnaudit.sources.preprocess import squashed
from attnaudit.sources.weights import fingerprint, fit_weights, read_weights

WEIGHTS = "model.safetensors"
#: Models that come with the package.
BUILT_IN = Path(__file__).parent / "built_in"


@dataclass(frozen=True)
class Card:
    """What is needed to build and feed a trained model, and what is known of it (`facts`)."""

    name: str
    architecture: Architecture
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    labels: tuple[str, ...] | None
    facts: Mapping[str, Any]

    def as_json(self) -> str:
        """The text of `card.json`."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    @staticmethod
    def read(folder: Path) -> Card:
        """The card of a folder."""
        try:
            content = json.loads((folder / CARD).read_text())
            layers = content["architecture"].get("attention_layers")
            numbers = {**content["architecture"], "attention_layers": None if layers is None else tuple(layers)}
            labels = None if content["labels"] is None else tuple(content["labels"])
            mean, std = tuple(content["mean"]), tuple(content["std"])
            return Card(content["name"], Architecture(**numbers), mean, std, labels, content["facts"])
        except FileNotFoundError as error:
            raise ModelError(f"{folder} holds no trained model: it has no {CARD}.") from error
        except (json.JSONDecodeError, KeyError, TypeError, OSError) as error:
            raise ModelError(f"{folder / CARD} is not readable as the card of a trained model.") from error


def folder_of(name: str) -> Path:
    """The folder of a built-in model, or of a path."""
    return BUILT_IN / name if (BUILT_IN / name / CARD).is_file() else Path(name)


def check(name: str) -> None:
    """Fail unless the folder has a card."""
    Card.read(folder_of(name))


def locate_weights(spec: ModelSpec) -> ModelSpec:
    """The spec with the weights file of its folder."""
    return spec if spec.weights is not None else replace(spec, weights=folder_of(spec.name) / WEIGHTS)


def load(spec: ModelSpec) -> LoadedModel:
    """Build the network with its weights, in float32, and note how to build it without."""
    card = Card.read(folder_of(spec.name))
    module = build(card.architecture, spec.random_seed or 0)
    if spec.weights is not None:
        weights = {name: tensor.float() for name, tensor in read_weights(spec.weights).items()}
        fit_weights(module, weights, spec.weights, spec.name)
    return LoadedModel(
        spec.label,
        module,
        fingerprint(module),
        "random" if spec.random_seed is not None else str(spec.weights),
        preprocess=lambda protocol: _preprocess(card, protocol),
        untrained=lru_cache(maxsize=1)(lambda seed: build(card.architecture, seed)),
    )


def _preprocess(card: Card, protocol: Protocol) -> Preprocess:
    """The shorter side to the model's size and the middle of the rest; squashed, as the study does, for `paper`."""
    size = card.architecture.image_size
    if protocol is Protocol.PAPER:
        return squashed(size, size)
    mean, std = (np.array(numbers, dtype=np.float32) for numbers in (card.mean, card.std))

    def preprocess(image: Image.Image) -> Tensor:
        factor = size / min(image.size)
        width, height = (max(size, round(side * factor)) for side in image.size)
        resized = image.resize((width, height), Image.Resampling.BICUBIC)
        left, top = (width - size) // 2, (height - size) // 2
        pixels = np.asarray(resized.crop((left, top, left + size, top + size)), dtype=np.float32) / 255
        return torch.from_numpy((pixels - mean) / std).permute(2, 0, 1).contiguous()

    return preprocess
