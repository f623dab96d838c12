"""The config of a transformers model, from a folder or hub id, with sizes that a network can have.

Two kinds of older files need help: those without a `model_type`, from before there was one, and those of toolkits that
wrap the config of the network in one of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnaudit.errors import AttnAuditError, ModelError, first_line
from attnaudit.sources.hf_tokenizers import find_file
from attnaudit.sources.hf_weights import read_checkpoint

CONFIG = "config.json"
#: More than any network has; a larger number would be built layer by layer until the memory is full.
_MOST_LAYERS = 1000
_SIZES = ("hidden_size", "num_attention_heads", "num_hidden_layers")


@dataclass(frozen=True)
class FoundConfig:
    """A config, what the names of its tensors begin with in the weights files, and what had to be concluded."""

    config: Any
    prefix: str = ""
    notes: tuple[str, ...] = ()


def read_config(transformers: Any, place: str, name: str, **options: Any) -> FoundConfig:
    """The config of a folder or hub id.

    Raises:
        ModelError: it is missing, cannot be used, or describes no network that could be built.
    """
    try:
        found = _older(transformers, place, name) or FoundConfig(
            transformers.AutoConfig.from_pretrained(place, **options)
        )
    except AttnAuditError:
        raise
    except Exception as error:  # transformers raises whatever an odd value leads to
        raise ModelError(f"The {CONFIG} of {name} cannot be used ({first_line(error)}).") from error
    check_sizes(found.config, name)
    return found


def check_sizes(config: Any, name: str) -> None:
    """Refuse sizes that no network has.

    Raises:
        ModelError: one is too small or too large.
    """
    sizes = {own: getattr(config, own, None) for own in _SIZES}
    layers = {own: value for own, value in config.to_dict().items() if "layers" in own or own == "n_layer"}
    for own, value in {**layers, **sizes}.items():
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        if own in _SIZES and value < 1:
            raise ModelError(f"The config of {name} cannot be used: {own} must be ≥ 1, got {value}.")
        if "layer" in own and value > _MOST_LAYERS:
            raise ModelError(f"The config of {name} cannot be used: {own} must be ≤ {_MOST_LAYERS}, got {value}.")


def _older(transformers: Any, place: str, name: str) -> FoundConfig | None:
    """The config of a file that does not say what network it describes, or not at its top; None for all others."""
    file = find_file(transformers, place, CONFIG)
    content = None if file is None else json.loads(file.read_bytes())
    if not isinstance(content, dict) or "model_type" in content:
        return None
    if wrapped := list(_wrapped(content)):
        (path, inner), *others = wrapped
        if others:
            return None
        toolkit = ".".join(path)
        note = f"took its config from {toolkit} of {CONFIG}, and the tensors of {path[-2]} from its weights"
        return FoundConfig(transformers.AutoConfig.for_model(**inner), f"{path[-2]}.", (note,))
    kind, why = _concluded_type(transformers, place, name)
    note = f"{CONFIG} does not say model_type: taken for {kind}, by {why}"
    return FoundConfig(transformers.AutoConfig.for_model(kind, **content), notes=(note,))


def _wrapped(content: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every config inside that says what network it describes, with the names that lead to it: `…, network, config`."""
    for key, value in content.items():
        if not isinstance(value, dict):
            continue
        if key == "config" and path and isinstance(value.get("model_type"), str):
            yield (*path, key), value
        else:
            yield from _wrapped(value, (*path, key))


def _concluded_type(transformers: Any, place: str, name: str) -> tuple[str, str]:
    """The type of a network, and what it was concluded from.

    Most tensors of a task model begin with it; transformers itself went by the name of the folder.

    Raises:
        ModelError: neither says it.
    """
    types = set(transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES)
    prefixes = {key.partition(".")[0] for key in read_checkpoint(transformers, place, name).entries}
    if len(found := prefixes & types) == 1:
        return found.pop(), "the names of its tensors"
    folder = Path(place).resolve().name.lower()
    named = [own for own in types if own in folder.replace("_", "-").split("-")]
    if len(named) == 1:
        return named[0], "the name of its folder"
    raise ModelError(
        f'The {CONFIG} of {name} does not say what network it describes: add its "model_type", such as "bert".'
    )
