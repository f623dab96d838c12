"""A model by name: the spec that is sent between processes, and the model built from it."""

from __future__ import annotations

import importlib
import logging
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image
from torch import Tensor, nn

from attnaudit.errors import ModelError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.records.card import CARD, Card
from attnaudit.sources.module_identity import module_fingerprint

_log = logging.getLogger(__name__)

Preprocess = Callable[[Image.Image], Tensor]
#: From texts and a maximum number of tokens to the inputs of a model.
Tokenise = Callable[[Sequence[str], int], Mapping[str, Tensor]]
#: From the numbers of tokens to a short text for each, to show it.
TokenTexts = Callable[[Sequence[int]], Sequence[str]]


@dataclass(frozen=True)
class Sample:
    """An input as a model's forward takes it: tensors by argument, each with a batch axis of 1.

    Samples of one `group` are not independent; one without stands for itself.
    """

    name: str
    inputs: Mapping[str, Tensor]
    group: str = ""


@dataclass(frozen=True)
class ModelInputs:
    """What a model reads: text, images, or samples that come with it; `words` say it to the user.

    `own` gives the samples, or texts of another kind than people write, each of which is an input.
    """

    kind: Literal["text", "images", "samples"]
    words: str
    own: Callable[[], Sequence[str] | Sequence[Sample]] | None = None


TEXT, IMAGES = ModelInputs("text", "text"), ModelInputs("images", "images")


@dataclass(frozen=True)
class ModelSpec:
    """How to build a model, as a few strings that can be sent to another process or machine.

    `weights` is a local file; with `random_seed` the model is untrained instead; `download` allows network access.
    """

    source: str
    name: str
    weights: Path | None = None
    random_seed: int | None = None
    download: bool = False

    @property
    def inputs(self) -> ModelInputs:
        """What the model reads."""
        return _source(self.source).inputs(self)

    @property
    def label(self) -> str:
        """The model's label in the evidence: its name, marked if its weights are random."""
        return self.name if self.random_seed is None else f"{self.name} (random weights)"


@dataclass(frozen=True)
class LoadedModel:
    """A built model, how to prepare its inputs, and, if known, how to build it untrained from a seed.

    The `fingerprint` covers everything that decides what the model computes from an input: weights, what they are
    weights of, and how inputs are prepared. `notes` say what was left out of a weights file, or filled in. A text that
    is full of the `unknown_token` is none that the model reads. `tokenizer_rules` gives the text of a `tokenizer.json`.
    Models trained by attnaudit have a `card`.
    """

    label: str
    module: nn.Module
    fingerprint: str
    weights_origin: str
    preprocess: Callable[[Protocol], Preprocess] | None = None
    tokenise: Tokenise | None = None
    unknown_token: int | None = None
    token_texts: TokenTexts | None = None
    untrained: Callable[[int], nn.Module] | None = None
    tokenizer_rules: Callable[[], str] | None = None
    card: Card | None = None
    notes: tuple[str, ...] = ()


class Source(typing.Protocol):
    """The interface of a module that provides models for a prefix."""

    def check(self, name: str) -> None:
        """Raise `ModelError`, with similar names, if the model is unknown."""

    def locate_weights(self, spec: ModelSpec) -> ModelSpec:
        """The spec with a local weights file; `WeightsError` says how to provide one."""

    def inputs(self, spec: ModelSpec) -> ModelInputs:
        """What the model reads."""

    def load(self, spec: ModelSpec) -> LoadedModel:
        """Build the model."""


#: The module for each prefix of a model name; the first is the default.
SOURCES = {
    "timm": "attnaudit.sources.timm_models",
    "hf": "attnaudit.sources.hf_models",
    "trained": "attnaudit.sources.trained_models",
    "atlas": "attnaudit.sources.atlas_models",
}


def aliases() -> Mapping[str, str]:
    """Short names of models, and what they stand for."""
    from attnaudit.sources.atlas.registry import ATLAS  # whose entries say what is here

    shipped = {"minilm": "hf:minilm", "vit-small-cifar": "trained:vit-small-cifar"}
    return {**shipped, **{name: f"atlas:{name}" for name in ATLAS}}


def _source(prefix: str) -> Source:
    return typing.cast(Source, importlib.import_module(SOURCES[prefix]))


def parse_model(
    name: str,
    *,
    weights: Path | None = None,
    random_weights: bool = False,
    seed: int = 0,
    download: bool = False,
) -> ModelSpec:
    """A spec from `PREFIX:NAME` or `NAME`; fails at once if the model is unknown or has no weights."""
    name = name if ":" in name else aliases().get(name, name)
    prefix, _, rest = name.rpartition(":")
    prefix = prefix or _prefix(Path(rest))
    if prefix not in SOURCES:
        raise ModelError(f"Unknown model source {prefix!r} in {name!r}. Known: {', '.join(SOURCES)}.")
    if not rest:
        raise ModelError(f"{name!r} has no name of a model: attnaudit ls models lists names.")
    if random_weights and weights is not None:
        raise UsageError("--random-weights and --weights exclude each other: give only one.")
    source = _source(prefix)
    source.check(rest)
    spec = ModelSpec(prefix, rest, weights, seed if random_weights else None, download)
    return spec if random_weights else source.locate_weights(spec)


def _prefix(place: Path) -> str:
    """The source of a name without a prefix: of a folder by its files, of a GGUF file transformers, otherwise timm."""
    if place.suffix == ".gguf" and not place.is_dir():
        return "hf"
    if not place.is_dir():
        return next(iter(SOURCES))
    return "trained" if (place / CARD).is_file() else "hf"


def load_model(spec: ModelSpec) -> LoadedModel:
    """Build the model of a spec, in evaluation mode; a message says what was left out of its weights or filled in."""
    loaded = _source(spec.source).load(spec)
    for note in loaded.notes:
        _log.info("%s: %s.", loaded.label, note)
    return loaded


def wrap_module(module: nn.Module, label: str | None = None) -> LoadedModel:
    """A model that the user has already built."""
    return LoadedModel(label or type(module).__name__, module, module_fingerprint(module), "given in memory")
