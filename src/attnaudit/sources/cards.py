"""The card of a trained model: what is needed to build and feed it, and what is known of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from attnaudit.errors import AttnAuditError, ModelError, first_line
from attnaudit.protocol import Protocol
from attnaudit.records.typed_settings import check_range, settings_from
from attnaudit.sources.architecture import Architecture, build
from attnaudit.sources.attention_choice import AttentionChoice
from attnaudit.sources.decoder import DecoderArchitecture, build_decoder
from attnaudit.sources.model import CARD, Preprocess
from attnaudit.sources.preprocess import middle_pixels, squashed
from attnaudit.sources.words import Vocabulary

#: A mean beyond this, or a deviation beyond it or below its inverse, is none of pixels, which float32 would lose.
_LARGEST = 1e6


@dataclass(frozen=True)
class ImageCard:
    """Of a vision transformer: mean and deviation of its pixels, and the names of its classes where they have any."""

    name: str
    architecture: Architecture
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    labels: tuple[str, ...] | None
    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        for mean, deviation in zip(self.mean, self.std, strict=True):
            check_range("card", -_LARGEST, _LARGEST, mean=mean)
            check_range("card", 1 / _LARGEST, _LARGEST, std=deviation)

    def build(self, seed: int) -> nn.Module:
        """The network, untrained."""
        return build(self.architecture, seed)

    def preprocess(self, protocol: Protocol) -> Preprocess:
        """The shorter side to the model's size and the middle of the rest; squashed, as the study does, for `paper`."""
        size = self.architecture.image_size
        if protocol is Protocol.PAPER:
            return squashed(size, size)
        mean, std = (np.array(numbers, dtype=np.float32)[:, None, None] for numbers in (self.mean, self.std))

        def prepared(image: Image.Image) -> Tensor:
            return torch.from_numpy((middle_pixels(image, size).astype(np.float32) / 255 - mean) / std)

        return prepared

    def as_json(self) -> str:
        """The text of `card.json`."""
        return _text(self.name, self.architecture, self.facts, mean=self.mean, std=self.std, labels=self.labels)


@dataclass(frozen=True)
class TextCard:
    """Of a language model: its words."""

    name: str
    architecture: DecoderArchitecture
    vocabulary: Vocabulary
    facts: Mapping[str, Any]

    def build(self, seed: int) -> nn.Module:
        """The network, untrained."""
        return build_decoder(self.architecture, seed)

    def tokenise(self, texts: Sequence[str], length: int) -> dict[str, Tensor]:
        """The numbers of the words of some texts, as many of each as the model reads at once."""
        return self.vocabulary.batch(texts, min(length, self.architecture.context))

    def as_json(self) -> str:
        """The text of `card.json`."""
        return _text(self.name, self.architecture, self.facts, vocabulary=self.vocabulary.words)


def _text(name: str, architecture: AttentionChoice, facts: Mapping[str, Any], **more: Any) -> str:
    content = {"name": name, "architecture": architecture.content, **more, "facts": facts}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def read_card(folder: Path) -> ImageCard | TextCard:
    """The card of a folder; one with a vocabulary is a language model's.

    Raises:
        ModelError: there is none, or it cannot be read.
    """
    try:
        content = json.loads((folder / CARD).read_text())
        if isinstance(content, Mapping) and "vocabulary" in content:
            return settings_from(TextCard, {**content, "vocabulary": {"words": content["vocabulary"]}}, "card")
        return settings_from(ImageCard, content, "card")
    except FileNotFoundError as error:
        raise ModelError(f"{folder} holds no trained model: it has no {CARD}.") from error
    except (ValueError, OSError, AttnAuditError) as error:
        fault = first_line(error).removesuffix(".")
        raise ModelError(f"{folder / CARD} is not readable as the card of a trained model ({fault}).") from error
