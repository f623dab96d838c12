"""A model by name: what travels between processes, and what a process builds from it."""

from __future__ import annotations

import importlib
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from torch import Tensor, nn

from attnaudit.errors import ModelError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.records.card import CARD, ImageCard, TextCard
from attnaudit.sources.weights import fingerprint

Preprocess = Callable[[Image.Image], Tensor]
#: From texts and a largest number of tokens to what a model is called with.
Tokenise = Callable[[Sequence[str], int], Mapping[str, Tensor]]


@dataclass(frozen=True)
class ModelSpec:
    """How to build a model; a few strings, so that it can go to another process or machine.

    `weights` is a local file; `random_seed` asks for an untrained network instead; `download` allows the network.
    """

    source: str
    name: str
    weights: Path | None = None
    random_seed: int | None = None
    download: bool = False

    @property
    def reads_text(self) -> bool:
        """Whether its inputs are texts rather than images."""
        return _source(self.source).reads_text(self.name)

    @property
    def label(self) -> str:
        """How the model appears in evidence: its name, marked if its weights are random."""
        return self.name if self.random_seed is None else f"{self.name} (random weights)"


@dataclass(frozen=True)
class LoadedModel:
    """A built model, how to feed it, and how to build its untrained twin from a seed, where its source can.

    `card` is what is known of a model that we trained.
    """

    label: str
    module: nn.Module
    fingerprint: str
    weights_origin: str
    preprocess: Callable[[Protocol], Preprocess] | None = None
    tokenise: Tokenise | None = None
    untrained: Callable[[int], nn.Module] | None = None
    card: ImageCard | TextCard | None = None


class Source(typing.Protocol):
    """What a module of this folder offers for the prefix it serves."""

    def check(self, name: str) -> None:
        """Raise `ModelError`, with near matches, unless there is such a model."""

    def locate_weights(self, spec: ModelSpec) -> ModelSpec:
        """The spec with a local weights file, or `WeightsError` saying what to do."""

    def reads_text(self, name: str) -> bool:
        """Whether its inputs are texts rather than images."""

    def load(self, spec: ModelSpec) -> LoadedModel:
        """Build it."""


#: Prefix of a model name and the module that serves it; the first is the default.
SOURCES = {
    "timm": "attnaudit.sources.timm_models",
    "hf": "attnaudit.sources.hf_models",
    "trained": "attnaudit.sources.trained_models",
}
#: Names that mean one model of one source.
ALIASES = {"minilm": "hf:minilm", "vit-small-cifar": "trained:vit-small-cifar"}


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
    """A spec from `PREFIX:NAME` or a bare name; fails early if there is no such model or it has no weights."""
    name = ALIASES.get(name, name)
    prefix, _, rest = name.rpartition(":")
    prefix = prefix or _prefix(Path(rest))
    if prefix not in SOURCES:
        raise ModelError(f"There is no model source {prefix!r} (in {name!r}); there is {', '.join(SOURCES)}.")
    if random_weights and weights is not None:
        raise UsageError("--random-weights and --weights exclude each other: give one of them.")
    source = _source(prefix)
    source.check(rest)
    spec = ModelSpec(prefix, rest, weights, seed if random_weights else None, download)
    return spec if random_weights else source.locate_weights(spec)


def _prefix(place: Path) -> str:
    """Whose a name without prefix is: a folder's by what is in it, any other timm's."""
    if not place.is_dir():
        return next(iter(SOURCES))
    return "trained" if (place / CARD).is_file() else "hf"


def load_model(spec: ModelSpec) -> LoadedModel:
    """Build the model of a spec, in evaluation mode."""
    return _source(spec.source).load(spec)


def wrap_module(module: nn.Module, label: str | None = None) -> LoadedModel:
    """A model that a user has already built."""
    return LoadedModel(label or type(module).__name__, module, fingerprint(module), "given in memory")
