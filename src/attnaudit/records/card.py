"""The card of a trained model, `card.json`: what is needed to build and feed it, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from attnaudit.errors import SettingError
from attnaudit.records.architecture import (
    Architecture,
    ClassifierArchitecture,
    DecoderArchitecture,
    EncoderArchitecture,
)
from attnaudit.records.ranges import check_range

#: The file by which a folder is known as a model of `attnaudit train`.
CARD = "card.json"
#: A mean beyond this, or a deviation beyond it or below its inverse, cannot be one of pixels: float32 would lose them.
_LARGEST = 1e6


_OPEN = with_config(ConfigDict(extra="allow"))


@_OPEN
class LayerFacts(TypedDict, total=False):
    """What is known of the attention of a trained layer.

    `entropy` is its mean in nats, `nonzero` the share of RPC-Attention's S that is not 0.
    """

    entropy: float
    nonzero: float


@_OPEN
class TrainingFacts(TypedDict, total=False):
    """Whatever is known of a training and its outcome; these names have a meaning to claims.

    `setting` names everything but model and seed that decided the training, `attention` the layers by name;
    `weights_digest` is a hash of the file of weights beside the card.
    """

    recipe: str
    seed: Annotated[int, Field(ge=0)]
    epochs: int
    setting: str
    weights_digest: str
    test_accuracy: float
    attention: Mapping[str, LayerFacts] | None


@dataclass(frozen=True)
class ImageCard:
    """Of a vision transformer: mean and deviation of its pixels, and the names of its classes where they have any."""

    name: str
    architecture: Architecture
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    labels: tuple[str, ...] | None
    facts: TrainingFacts

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
    facts: TrainingFacts


@dataclass(frozen=True)
class SentenceCard:
    """Of a fine-tuned encoder: its config, and the rules of its tokenizer as the text of a `tokenizer.json`."""

    name: str
    architecture: EncoderArchitecture
    config: Mapping[str, Any]
    tokenizer: str
    facts: TrainingFacts


#: The card of any trained model.
Card = ImageCard | TextCard | SentenceCard


@dataclass(frozen=True)
class NetworkCard:
    """What is known of an evaluated network that `attnaudit train` made."""

    architecture: ClassifierArchitecture
    facts: TrainingFacts

    def __post_init__(self) -> None:
        if "seed" in self.facts and "recipe" not in self.facts:
            raise SettingError("facts.recipe is missing.")
