"""Models and inputs as a user names them, alike in Python and on the command line, and the default inputs."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from torch import nn

from attnaudit.display import counted, readable
from attnaudit.errors import InputError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.records.ranges import check_whole
from attnaudit.sources.data import VARIABLE, data_file
from attnaudit.sources.images import ImageItem, choose_images, find_images, image_shards, sample_images
from attnaudit.sources.inputs import Batch, Shard, shard_size, tensor_shards
from attnaudit.sources.loaders import loader_shards
from attnaudit.sources.model import LoadedModel, ModelSpec, Sample, parse_model
from attnaudit.sources.text_documents import TextDocument, TextFiles, standard_text
from attnaudit.sources.text_shards import text_shards
from attnaudit.sources.texts import TextItem, passages, study_lines, whole_lines

_log = logging.getLogger(__name__)
InputKind = Literal["images", "text"]


def select_specs(
    names: str | Sequence[str],
    *,
    weights: str | Path | None = None,
    random_weights: bool = False,
    seed: int = 0,
    download: bool = False,
) -> list[ModelSpec]:
    """The models of these names.

    Raises:
        UsageError: there is none, or a weights file for more than one.
    """
    given = list(names) if isinstance(names, Sequence) and not isinstance(names, str) else [names]
    if not given:
        raise UsageError("No model is given: name at least one.")
    for name in given:
        if not isinstance(name, str):
            raise UsageError(f"models must be one torch module, or names of models, got {type(name).__name__}.")
    if weights is not None and len(given) != 1:
        raise UsageError(f"--weights needs exactly one model, got {len(given)}.")
    file = None if weights is None else Path(weights)
    return [
        parse_model(name, weights=file, random_weights=random_weights, seed=seed, download=download) for name in given
    ]


@dataclass(frozen=True)
class InputSelection:
    """The inputs that a user names.

    Args:
        place: a folder of images, or a text file or folder; None for the default ones.
        limit: how many are drawn; all if None.
        seed: of the draw.
        first: take the first in order instead of a draw.
        lines: of texts, lines as the study draws them instead of passages.
        samples: whether, without a place and a data folder, samples that come with installed packages will do.
        kind: what a user says they are; the models decide if None.
        by_folder: whether images of one folder belong together, such as frames of one film.
        known_only: whether texts are skipped that are full of words which the model does not know.
    """

    place: Path | None = None
    limit: int | None = None
    seed: int = 0
    first: bool = False
    lines: bool = False
    samples: bool = True
    kind: InputKind | None = None
    by_folder: bool = False
    known_only: bool = False

    def __post_init__(self) -> None:
        check_whole(1, **{"--limit": self.limit})
        if self.kind not in (None, *get_args(InputKind)):
            raise UsageError(f"kind must be images, text or None, got {self.kind!r}.")


@dataclass(frozen=True)
class SelectedInputs:
    """The inputs, cut into shards, and a few words that say what they are."""

    shards: tuple[Shard, ...]
    words: str


def select_inputs(
    models: Sequence[ModelSpec | LoadedModel], selection: InputSelection, protocol: Protocol, device: str = "cpu"
) -> SelectedInputs:
    """The inputs for models of one kind on a device.

    Raises:
        UsageError: the models need different inputs, or the selection does not suit them.
        InputError: the inputs cannot be found or read.
    """
    specs = [model for model in models if isinstance(model, ModelSpec)]
    if len(specs) < len(models):
        raise UsageError(
            "A module given in memory needs a batch of tensors or a loader of batches: its preprocessing is not known."
        )
    kinds = {spec.inputs.kind for spec in specs}
    if len(kinds) > 1:
        raise UsageError("Models that read different kinds of inputs cannot share them: audit them separately.")
    if "images" in kinds:
        if selection.kind == "text":
            raise UsageError(f"{specs[0].name} reads images: use --images instead of --text.")
        if selection.lines:
            raise UsageError(f"{specs[0].name} reads images: --lines is for text.")
        items = select_images(selection)
        return SelectedInputs(image_shards(items, shard_size(device)), counted(len(items), "image"))
    if "samples" in kinds:
        return _select_samples(specs, selection)
    texts, words = _texts(specs, selection, protocol)
    shards = text_shards(texts, protocol, shard_size(), known_only=selection.known_only)
    return SelectedInputs(shards, words)


def select_batch(batch: Batch, device: str = "cpu", groups: Sequence[str] | None = None) -> SelectedInputs:
    """A batch that a user has already made, and the group of each input, if some belong together."""
    shards = tensor_shards(batch, shard_size(device), groups=groups)
    return SelectedInputs(shards, f"{sum(len(shard.names) for shard in shards)} inputs in memory")


def select_loader(
    loader: Iterable[Any],
    model: nn.Module | None,
    limit: int | None,
    device: str = "cpu",
    groups: Sequence[str] | None = None,
) -> SelectedInputs:
    """The first inputs of a loader, such as torch's `DataLoader`.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(loader, Iterable):
        raise UsageError(
            f"inputs must be a batch of tensors, a loader of batches, or a path, got {type(loader).__name__}."
        )
    shards = loader_shards(loader, model, shard_size(device), limit, groups)
    return SelectedInputs(shards, f"{sum(len(shard.names) for shard in shards)} inputs of a loader")


def select_images(selection: InputSelection) -> tuple[ImageItem, ...]:
    """The images of the given folder, of the data folder, or samples from an installed package."""
    root = selection.place or data_file("imagenet_val")
    if root is not None:
        paths = find_images(root)
    elif selection.samples:
        paths = sample_images()
        root = paths[0].parent
        _log.info("No --images given and %s is unset: using %d photographs from scikit-image.", VARIABLE, len(paths))
    else:
        raise InputError(f"No images were found: give --images DIR, or set {VARIABLE} to the data folder.")
    if selection.first:
        paths = paths[: selection.limit]
    return choose_images(paths, root, selection.limit, selection.seed, by_folder=selection.by_folder)


def _select_samples(specs: Sequence[ModelSpec], selection: InputSelection) -> SelectedInputs:
    """Samples that come with a model, each a unit of work, as their sizes differ."""
    name, inputs = specs[0].name, specs[0].inputs
    if {spec.name for spec in specs} != {name}:
        raise UsageError(f"{name} reads {inputs.words}, which come with it: audit it without other models.")
    if selection.place or selection.kind or selection.lines or selection.by_folder:
        raise UsageError(f"{name} reads {inputs.words}, which come with it: leave out options of images and text.")
    samples = [own for own in inputs.own() if isinstance(own, Sample)] if inputs.own else []
    if selection.limit is not None and selection.limit < len(samples):
        drawn = random.Random(selection.seed).sample(samples, selection.limit)
        samples = samples[: selection.limit] if selection.first else drawn
    shards = (tensor_shards(own.inputs, 1, (own.name,), (own.group,) if own.group else None) for own in samples)
    return SelectedInputs(
        tuple(itertools.chain.from_iterable(shards)), f"{counted(len(samples), 'sample')} of {inputs.words}"
    )


def _texts(
    specs: Sequence[ModelSpec], selection: InputSelection, protocol: Protocol
) -> tuple[tuple[TextItem, ...], str]:
    """Lines or passages of a file, of the models' own texts, of WikiText (`paper`), or of the standard library."""
    name, words = specs[0].name, specs[0].inputs.words
    if selection.by_folder:
        raise UsageError(f"{name} reads text: --group-by-folder is for images, texts go by file.")
    if selection.kind == "images":
        raise UsageError(f"{name} reads text: use --text instead of --images.")
    kinds = {None if inputs.own is None else tuple(map(str, inputs.own())) for inputs in (s.inputs for s in specs)}
    if len(kinds) > 1:
        raise UsageError("These models read different kinds of text: audit them separately.")
    own, paper = kinds.pop(), protocol is Protocol.PAPER
    wiki = data_file("wikitext/wiki.test.raw") if paper and own is None else None
    place = selection.place or wiki
    text: Iterable[TextDocument]
    if place is not None:
        text, source = TextFiles(place), readable(place.name)
    elif own is not None:
        text, source = [TextDocument("", ["\n".join(own)])], words
    elif selection.samples:
        _log.info("No --text given: using the language reference that comes with Python (pydoc_data.topics).")
        text, source = standard_text(), "the Python reference"
    else:
        raise InputError(f"No text was found: give --text FILE, or set {VARIABLE} to the data folder.")
    choose, kind = (study_lines, "line") if paper or selection.lines else (passages, "passage")
    if own is not None:
        choose, kind = whole_lines, "line" if selection.place else "sample"
    if selection.first:
        chosen = choose(text, None, selection.seed)[: selection.limit]
    else:
        chosen = choose(text, selection.limit, selection.seed)
    return chosen, f"{counted(len(chosen), kind)} of {source}"
