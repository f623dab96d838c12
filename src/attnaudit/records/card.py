"""The card of a trained model, `card.json`: what is needed to build and feed it, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attnaudit.records.architecture import Architecture, DecoderArchitecture
from attnaudit.records.ranges import check_range

#: The file by which a folder is known as a model of `attnaudit train`.
CARD = "card.json"
#: A mean beyond this, or a deviation beyond it or below its inverse, cannot be one of pixels: float32 would lose them.
_LARGEST = 1e6


@dataclass(frozen=True)
class ImageCard:
    """Of a vision transformer: mean and deviation of its pixels, and the names of its classes where they have any.

    `facts` are whatever is known of its training; what claims read of them is a `TrainingFacts`.
    """

    name: str
    architecture: Architecture
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    labels: tuple[str, ...] | None
    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        for mean, deviation in zip(self.mean, self.std, strict=True):
            check_range(-_LARGEST, _LARGEST, mean=mean)
            check_range(1 / _LARGEST, _LARGEST, std=deviation)


@dataclass(frozen=True)
class TextCard:
    """Of a language model: its words by number."""

    name: str
    architecture: DecoderArchitecture
    vocabulary: tuple[str, ...]
    facts: Mapping[str, Any]
