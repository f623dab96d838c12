"""Read the cards of trained models, build their networks, and prepare their inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnaudit.errors import ModelError, RunFolderError
from attnaudit.protocol import Protocol
from attnaudit.records import json_file
from attnaudit.records.architecture import DecoderArchitecture
from attnaudit.records.card import CARD, Card, ImageCard, SentenceCard, TextCard
from attnaudit.records.engine import default_memory, format_size
from attnaudit.sources.decoder import build_decoder
from attnaudit.sources.encoder import SentenceTokens, build_encoder
from attnaudit.sources.model import Preprocess, Tokenise, TokenTexts
from attnaudit.sources.preprocess import ImagePreparation
from attnaudit.sources.vision_transformer import build_vision_transformer
from attnaudit.sources.words import Vocabulary


def read_card(folder: Path) -> Card:
    """The card of a folder; its fields say of what.

    Raises:
        ModelError: the card is missing or cannot be read.
    """
    file = folder / CARD
    try:
        return json_file.read(_kind(file), file, "the card of a trained model")
    except FileNotFoundError as error:
        raise ModelError(f"{folder} has no trained model: {CARD} is missing.") from error
    except RunFolderError as error:
        raise ModelError(str(error)) from error


def _kind(file: Path) -> type[Card]:
    """A card with a vocabulary belongs to a language model, one with a tokenizer to a fine-tuned encoder."""
    try:
        names = json.loads(file.read_bytes())
        return TextCard if "vocabulary" in names else SentenceCard if "tokenizer" in names else ImageCard
    except (ValueError, TypeError, RecursionError, OSError):  # a damaged card is reported when it is read
        return ImageCard


def card_identity(card: Card) -> dict[str, Any]:
    """What decides the numbers of a network beside its weights: its architecture, and how inputs are prepared."""
    content = dict(json_file.plain(card))
    return {
        name: content[name]
        for name in ("architecture", "mean", "std", "vocabulary", "config", "tokenizer")
        if name in content
    }


def build_network(card: Card, seed: int) -> nn.Module:
    """The network of a card, untrained.

    Raises:
        ModelError: it is too large for this machine, or cannot be built.
    """
    if isinstance(card, SentenceCard):
        return build_encoder(card.config, card.architecture, seed)
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
    own = card.architecture
    return ImagePreparation(own.image_size, card.mean, card.std, width=own.image_width).preprocess(protocol)


def tokeniser(card: TextCard | SentenceCard) -> Tokenise:
    """A function from texts to numbers of words or tokens, truncated to the context of the model."""
    if isinstance(card, SentenceCard):
        return partial(_sentence_batch, card)
    vocabulary, context = Vocabulary(card.vocabulary), card.architecture.context
    return lambda texts, length: vocabulary.batch(texts, min(length, context))


def _sentence_batch(card: SentenceCard, texts: Sequence[str], length: int) -> Mapping[str, Tensor]:
    found = sentence_tokens(card, length)(texts)
    real = found != card.config["pad_token_id"]
    longest = int(real.sum(dim=1).max())
    return {"input_ids": found[:, :longest], "attention_mask": real[:, :longest].to(torch.int64)}


def sentence_tokens(card: SentenceCard, length: int | None = None) -> SentenceTokens:
    """The tokenizer of a fine-tuned encoder, for sentences of its context or of fewer tokens."""
    context = card.architecture.context
    return SentenceTokens(card.tokenizer, int(card.config["pad_token_id"]), min(length or context, context))


def word_texts(card: TextCard | SentenceCard) -> TokenTexts:
    """A function from numbers to the words or tokens."""
    if isinstance(card, SentenceCard):
        return sentence_tokens(card).texts
    return lambda numbers: [card.vocabulary[number] for number in numbers]
