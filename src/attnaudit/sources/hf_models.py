"""Models from transformers: the language models of Table 4, local folders, hub ids, and one inside a package."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from attnaudit.display import readable
from attnaudit.errors import AttnAuditError, ModelError, WeightsError, first_line
from attnaudit.numerics.digest import digest
from attnaudit.numerics.randomness import seeded
from attnaudit.records.engine import default_memory, format_size
from attnaudit.records.run_folder import RunFolder
from attnaudit.sources.embedded import EMBEDDED, check_embedded, embedded_folder
from attnaudit.sources.hf_checkpoints import LoadedCheckpoint, load_checkpoint, parameter_count
from attnaudit.sources.hf_configs import read_config
from attnaudit.sources.hf_gguf import find_gguf, gguf_folder
from attnaudit.sources.hf_images import preprocess, read_processor, reads_images
from attnaudit.sources.hf_library import quiet, the_library
from attnaudit.sources.hf_positions import most_tokens
from attnaudit.sources.hf_tokenizers import (
    read_tokenizer,
    token_texts,
    tokenised,
    tokenizer_fingerprint,
    unknown_token,
    with_decoder_inputs,
)
from attnaudit.sources.model import IMAGES, TEXT, LoadedModel, ModelInputs, ModelSpec
from attnaudit.sources.model_cache import ORIGIN, check_converted
from attnaudit.sources.weights import fingerprint, fit_weights, read_weights

#: What a config says of itself and not of the network.
_NOT_OF_NETWORK = ("_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version")


def check(name: str) -> None:
    """Check that the package of an embedded model is installed, and that a folder contains a model."""
    if name in EMBEDDED:  # also if there is a folder of that name, which is called ./name
        embedded_folder(name)
    elif find_gguf(Path(name)) is not None:
        return
    elif RunFolder(Path(name)).settings_file.is_file() and not (Path(name) / "config.json").is_file():
        raise ModelError(f"{name} is a run folder without a finished model: finish its training, or give another one.")
    elif Path(name).is_dir() and not (Path(name) / "config.json").is_file():
        raise ModelError(f"{name} is not a Hugging Face model: the folder has no config.json.")
    elif (Path(name) / "adapter_config.json").is_file():
        raise ModelError(f"{name} holds an adapter: merge it into its model first, and save that.")


def locate_weights(spec: ModelSpec) -> ModelSpec:
    """The spec, if its files are local or may be downloaded."""
    if spec.download or _folder(spec.name) is not None or _cached(spec.name):
        return spec
    raise WeightsError(
        f"{spec.name} has no local copy: give a folder in Hugging Face layout, or allow the network with --download."
    )


def _folder(name: str) -> Path | None:
    """The local folder of an embedded model or a path; None if there is none."""
    if name in EMBEDDED:
        return embedded_folder(name)
    if (file := find_gguf(Path(name))) is not None:
        return gguf_folder(file)
    return Path(name) if Path(name).is_dir() else None


def _cached(name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    try:
        return isinstance(try_to_load_from_cache(name, "config.json"), str)
    except ValueError as error:
        raise ModelError(f"{name!r} is neither a local folder nor a valid hub id.") from error


def inputs(spec: ModelSpec) -> ModelInputs:
    """Text, but for models whose config has images and no vocabulary."""
    return IMAGES if reads_images(the_library(), str(_folder(spec.name) or spec.name)) else TEXT


def load(spec: ModelSpec) -> LoadedModel:
    """Build the network and what prepares its inputs; code of a repository never runs, and only plain tensors are read.

    Raises:
        ModelError: config or tokenizer are missing or cannot be used.
        WeightsError: the weights do not fit the config, those of an embedded model were changed, or there is no local
            copy of a hub model, whose config is needed even for random weights.
    """
    folder = _folder(locate_weights(spec).name)
    if spec.name in EMBEDDED:
        check_embedded(spec.name)
    return load_folder(spec, str(folder or spec.name))


def load_folder(spec: ModelSpec, place: str, origin: str | None = None) -> LoadedModel:
    """The same, from where its files are, which may be a converted model in the user's cache; `origin` says from what.

    Raises:
        WeightsError: the files of a converted model were changed.
    """
    transformers = the_library()
    said = check_converted(Path(place)) if (Path(place) / ORIGIN).is_file() else ()
    options = {"local_files_only": not spec.download, "trust_remote_code": False}
    with quiet(transformers):
        found = read_config(transformers, place, spec.name, **options)
        config = found.config
        reads = read_processor if reads_images(transformers, place) else read_tokenizer
        reader = reads(transformers, place, spec.name, config=config, **options)
        untrained = partial(_build, config, spec.name)
        if spec.random_seed is not None or spec.weights is not None:
            checkpoint = LoadedCheckpoint(untrained(spec.random_seed or 0), ())
        else:
            checkpoint = load_checkpoint(transformers, place, spec.name, found, untrained, **options)
    module = checkpoint.module
    if spec.weights is not None:
        fit_weights(module, read_weights(spec.weights), spec.weights, spec.name)
    network = {name: value for name, value in config.to_dict().items() if name not in _NOT_OF_NETWORK}
    identity = fingerprint(module), json.dumps(network, sort_keys=True, default=str)
    loaded = LoadedModel(
        spec.label,
        module,
        digest(*identity),
        "random"
        if spec.random_seed is not None
        else readable(origin or str(spec.weights or (spec.name if said else place))),
        untrained=lru_cache(maxsize=1)(untrained),
        notes=(*said, *checkpoint.notes),
    )
    if reads is read_processor:
        prepared, size = digest(*identity, reader.to_json_string()), config.image_size
        return replace(loaded, fingerprint=prepared, preprocess=partial(preprocess, reader, size))
    words, positions = getattr(config, "vocab_size", None), most_tokens(module, config)
    both = bool(getattr(config, "is_encoder_decoder", False))

    def tokenise(texts: Sequence[str], length: int) -> Mapping[str, Tensor]:
        batch = tokenised(reader, texts, min(length, positions or length), words=words, name=spec.name)
        return with_decoder_inputs(batch) if both else batch

    prepared = digest(*identity, tokenizer_fingerprint(reader))
    rules = getattr(reader, "backend_tokenizer", None)
    return replace(
        loaded,
        tokenizer_rules=None if rules is None else rules.to_str,
        fingerprint=prepared,
        tokenise=tokenise,
        unknown_token=unknown_token(reader),
        token_texts=partial(token_texts, reader),
    )


def _build(config: Any, name: str, seed: int) -> nn.Module:
    """The untrained network."""
    transformers = the_library()
    try:
        needed = 4 * (parameter_count(transformers, config) or 0)
        if needed > default_memory():
            raise ModelError(f"{name} is too large for this machine: its parameters take {format_size(needed)}.")
        with seeded(seed):
            module: nn.Module = transformers.AutoModel.from_config(config)
    except AttnAuditError:
        raise
    except Exception as error:  # transformers raises whatever an odd value leads to
        raise ModelError(f"transformers cannot build {name} ({first_line(error)}).") from error
    return module.eval()
