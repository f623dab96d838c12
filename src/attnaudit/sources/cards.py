"""Trained models by their cards: read, built and fed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from attnaudit.errors import ModelError, RunFolderError
from attnaudit.protocol import Protocol
from attnaudit.records import json_file
from attnaudit.records.card import CARD, ImageCard, TextCard
from attnaudit.sources.decoder import build_decoder
from attnaudit.sources.model import Preprocess, Tokenise
from attnaudit.sources.preprocess import middle_pixels, squashed
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.sources.words import Vocabulary


def read_card(folder: Path) -> ImageCard | TextCard:
    """The card of a folder; one with a vocabulary is a language model's.

    Raises:
        ModelError: there is none, or it cannot be read.
    """
    file = folder / CARD
    try:
        kind: type[ImageCard] | type[TextCard] = TextCard if _has_vocabulary(file) else ImageCard
        return json_file.read(kind, file, "the card of a trained model")
    except FileNotFoundError as error:
        raise ModelError(f"{folder} has no trained model: {CARD} is missing.") from error
    except RunFolderError as error:
        raise ModelError(str(error)) from error


def _has_vocabulary(file: Path) -> bool:
    try:
        return "vocabulary" in json.loads(file.read_bytes())
    except (ValueError, TypeError):  # damaged: whoever reads it says how
        return False


def build_network(card: ImageCard | TextCard, seed: int) -> nn.Module:
    """The network of a card, untrained."""
    if isinstance(card, TextCard):
        return build_decoder(card.architecture, seed)
    return build_vision_transformer(card.architecture, seed)


def preprocessing(card: ImageCard, protocol: Protocol) -> Preprocess:
    """The shorter side to the model's size and the middle of the rest; squashed, as the study does, for `paper`."""
    size = card.architecture.image_size
    if protocol is Protocol.PAPER:
        return squashed(size, size)
    mean, std = (np.array(numbers, dtype=np.float32)[:, None, None] for numbers in (card.mean, card.std))

    def prepared(image: Image.Image) -> Tensor:
        return torch.from_numpy((middle_pixels(image, size).astype(np.float32) / 255 - mean) / std)

    return prepared


def tokeniser(card: TextCard) -> Tokenise:
    """The numbers of the words of some texts, as many of each as the model reads at once."""
    vocabulary, context = Vocabulary(card.vocabulary), card.architecture.context
    return lambda texts, length: vocabulary.batch(texts, min(length, context))
