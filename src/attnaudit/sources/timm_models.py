"""timm models by name, with local, cached, downloaded or random weights."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from torch import nn

from attnaudit.display import enumerated, readable
from attnaudit.errors import ModelError, WeightsError, first_line, similar
from attnaudit.numerics.digest import digest
from attnaudit.numerics.randomness import seeded
from attnaudit.protocol import Protocol
from attnaudit.sources.data import VARIABLE, data_weights
from attnaudit.sources.model import IMAGES, LoadedModel, ModelInputs, ModelSpec, Preprocess, aliases
from attnaudit.sources.preprocess import squashed
from attnaudit.sources.timm_library import the_timm, timm_data
from attnaudit.sources.weights import fingerprint, fit_weights, read_weights

#: The usual sizes of patches, windows and images, which are suggested first.
_USUAL = ("_patch16_224", "_patch4_window7_224")


def check(name: str) -> None:
    """Check that timm knows the architecture (a `.tag` may follow); the error suggests what may be meant."""
    if not the_timm().is_model(name.partition(".")[0]):
        raise ModelError(f"Unknown model {name!r}: {_suggestion(name)}")


def _suggestion(name: str) -> str:
    if Path(name).is_file():
        return "it is a file; give the name of its network, and the file as --weights."
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        return "there is no such folder."
    owner, _, rest = name.rpartition("/")
    if owner and the_timm().is_model(rest.partition(".")[0]):
        return f"did you mean timm:{rest}?"
    networks = sorted(the_timm().list_models(), key=lambda each: (not each.endswith(_USUAL), len(each), each))
    close = [] if owner else similar(name, [*aliases(), *networks])
    if close:
        return f"did you mean {enumerated(close)}?"
    missing = "timm does not have it" if not owner else "there is no such folder, and timm does not have it"
    return f"{missing}; one of the Hugging Face hub is called hf:{name}; attnaudit ls models lists others."


def locate_weights(spec: ModelSpec) -> ModelSpec:
    """The spec with a weights file: given, in the data folder, or in the hub's local cache."""
    if spec.weights is not None or spec.download:
        return spec
    found = data_weights(spec.name) or _cached(spec.name)
    if found is None:
        raise WeightsError(
            f"{spec.name} has no local weights: give --weights FILE, set {VARIABLE} to a folder with "
            f"*/{spec.name}.safetensors, allow the network with --download, or audit an untrained network with "
            "--random-weights."
        )
    return replace(spec, weights=found)


def _cached(name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    config = the_timm().get_pretrained_cfg(name)
    if config is None or not config.hf_hub_id:
        return None
    path = try_to_load_from_cache(config.hf_hub_id, "model.safetensors")
    return Path(path) if isinstance(path, str) else None


def inputs(spec: ModelSpec) -> ModelInputs:
    """Always images."""
    return IMAGES


def load(spec: ModelSpec) -> LoadedModel:
    """Build the network with its weights."""
    module = _build(spec.name, spec.random_seed or 0, pretrained=spec.download and spec.weights is None)
    if spec.weights is not None:
        fit_weights(module, read_weights(spec.weights), spec.weights, spec.name)
    preparation = {name: str(value) for name, value in _data_config(module).items()}
    return LoadedModel(
        spec.label,
        module,
        digest(fingerprint(module), preparation),
        "random" if spec.random_seed is not None else readable(str(spec.weights or "hub")),
        preprocess=lambda protocol: _preprocess(module, protocol),
        untrained=lru_cache(maxsize=1)(lambda seed: _build(spec.name, seed, pretrained=False)),
    )


def _build(name: str, seed: int, *, pretrained: bool) -> nn.Module:
    """The network in evaluation mode, initialised from a seed."""
    try:
        with seeded(seed):
            module: nn.Module = the_timm().create_model(name, pretrained=pretrained)
    except Exception as error:  # a network may raise anything while it is built
        raise ModelError(f"timm cannot build {name} ({first_line(error)}).") from error
    return module.eval()


def _preprocess(module: nn.Module, protocol: Protocol) -> Preprocess:
    config = _data_config(module)
    if protocol is Protocol.PAPER:
        return squashed(*config["input_size"][1:])
    transform: Preprocess = timm_data().create_transform(**config, is_training=False)
    return transform


def _data_config(module: nn.Module) -> dict[str, Any]:
    """How images are prepared for a model."""
    return dict(timm_data().resolve_model_data_config(module))
