"""Read the cards of trained models, build their networks, and prepare their inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import nn

from attnaudit.errors import ModelError, RunFolderError
from attnaudit.protocol import Protocol
from attnaudit.records import json_file
from attnaudit.records.architecture import DecoderArchitecture
from attnaudit.records.card import CARD, ImageCard, TextCard
from attnaudit.records.engine import default_memory, format_size
from attnaudit.sources.decoder import build_decoder
from attnaudit.sources.model import Preprocess, Tokenise, TokenTexts
from attnaudit.sources.preprocess import ImagePreparation
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.sources.words import Vocabulary


def read_card(folder: Path) -> ImageCard | TextCard:
    """The card of a folder; a card with a vocabulary belongs to a language model.

    Raises:
        ModelError: the card is missing or cannot be read.
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
    except (ValueError, TypeError, RecursionError, OSError):  # a damaged card is reported when it is read
        return False


def card_identity(card: ImageCard | TextCard) -> dict[str, Any]:
    """What decides the numbers of a network beside its weights: its architecture, and how inputs are prepared."""
    content = dict(json_file.plain(card))
    return {name: content[name] for name in ("architecture", "mean", "std", "vocabulary") if name in content}


def build_network(card: ImageCard | TextCard, seed: int) -> nn.Module:
    """The network of a card, untrained.

    Raises:
        ModelError: it is too large for this machine.
    """
    own = card.architecture
    # Blocks of width x width, four of them in attention and eight in the MLP, and what embeds words or pixels.
    rows = own.vocabulary + own.context if isinstance(own, DecoderArchitecture) else own.tokens + own.classes
    needed = 4 * own.width * (12 * own.depth * own.width + rows)
    if needed > default_memory():
        raise ModelError(f"its parameters take about {format_size(needed)}, too much for this machine.")
    if isinstance(card, TextCard):
        return build_decoder(card.architecture, seed)
    return build_vision_transformer(card.architecture, seed)


def preprocessing(card: ImageCard, protocol: Protocol) -> Preprocess:
    """A centre crop of the model's size; squashed, as in the study, for `paper`."""
    return ImagePreparation(card.architecture.image_size, card.mean, card.std).preprocess(protocol)


def tokeniser(card: TextCard) -> Tokenise:
    """A function from texts to word numbers, truncated to the context of the model."""
    vocabulary, context = Vocabulary(card.vocabulary), card.architecture.context
    return lambda texts, length: vocabulary.batch(texts, min(length, context))


def word_texts(card: TextCard) -> TokenTexts:
    """A function from word numbers to the words."""
    return lambda numbers: [card.vocabulary[number] for number in numbers]
