"""Models and inputs as a user names them, alike in Python and on the command line, and the default inputs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from torch import nn

from attnaudit.display import readable
from attnaudit.errors import InputError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.records.ranges import check_whole
from attnaudit.sources.data import VARIABLE, data_file
from attnaudit.sources.images import ImageItem, choose_images, find_images, image_shards, sample_images
from attnaudit.sources.inputs import Batch, Shard, shard_size, tensor_shards
from attnaudit.sources.loaders import loader_shards
from attnaudit.sources.model import LoadedModel, ModelSpec, parse_model
from attnaudit.sources.texts import TextFiles, TextItem, passages, standard_text, study_lines, text_shards

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
    kinds = {spec.reads_text for spec in specs}
    if len(kinds) > 1:
        raise UsageError("Image and text models cannot share their inputs: audit them separately.")
    if kinds == {True}:
        if selection.by_folder:
            raise UsageError(f"{specs[0].name} reads text: --group-by-folder is for images, texts go by file.")
        if selection.kind == "images":
            raise UsageError(f"{specs[0].name} reads text: use --text instead of --images.")
        samples = {spec.sample_text for spec in specs}
        if selection.place is None and len(samples) > 1:
            raise UsageError("These models read different kinds of text: audit them separately.")
        texts, words = _texts(selection, protocol, next(iter(samples)))
        shards = text_shards(texts, protocol, shard_size(), known_only=selection.known_only)
        return SelectedInputs(shards, f"{len(texts)} {words}")
    if selection.kind == "text":
        raise UsageError(f"{specs[0].name} reads images: use --images instead of --text.")
    if selection.lines:
        raise UsageError(f"{specs[0].name} reads images: --lines is for text.")
    items = select_images(selection)
    return SelectedInputs(image_shards(items, shard_size(device)), f"{len(items)} images")


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


def _texts(selection: InputSelection, protocol: Protocol, samples: Path | None) -> tuple[tuple[TextItem, ...], str]:
    """Lines or passages of a file, of a model's own samples, of WikiText (`paper`), or of the standard library."""
    paper = protocol is Protocol.PAPER
    place = selection.place or samples or (data_file("wikitext/wiki.test.raw") if paper else None)
    if place is None and not selection.samples:
        raise InputError(f"No text was found: give --text FILE, or set {VARIABLE} to the data folder.")
    if place is None:
        _log.info("No --text given: using the language reference that comes with Python (pydoc_data.topics).")
    text = standard_text() if place is None else TextFiles(place)
    choose, kind = (study_lines, "lines") if paper or selection.lines else (passages, "passages")
    if selection.first:
        chosen = choose(text, None, selection.seed)[: selection.limit]
    else:
        chosen = choose(text, selection.limit, selection.seed)
    return chosen, f"{kind} of {readable(place.name) if place else 'the Python reference'}"
