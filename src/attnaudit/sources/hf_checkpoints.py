"""Load the checkpoint of a transformers model strictly: whatever does not fit is an error that names it.

transformers draws at random what a file lacks, and drops what it does not know. Two cases are harmless, and are said:
the heads of other tasks, which are not part of the encoder, and a pooler, which comes after all attention.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import nn

from attnaudit.errors import AttnAuditError, ModelError, WeightsError, first_line
from attnaudit.sources.hf_tokenizers import find_file
from attnaudit.sources.weights import some_names

_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_POOLER = "pooler."
#: Names of floating-point types in a safetensors header begin with one of these.
_REAL = ("F", "BF")
#: A config may describe more than its files hold, but not by orders of magnitude: building it would fill the memory.
_FACTOR, _SMALL = 4, 1 << 28


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A loaded module, and what was left out of the files or filled in."""

    module: nn.Module
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Entry:
    """A tensor in a file."""

    dtype: str
    elements: int


def load_checkpoint(
    transformers: Any, place: str, name: str, config: Any, untrained: Callable[[int], nn.Module], **options: Any
) -> LoadedCheckpoint:
    """The model of a folder or hub id, in evaluation mode; only safetensors files are read.

    Args:
        transformers: the library.
        place: the folder or hub id.
        name: what an error calls it.
        config: of the model.
        untrained: builds the module from a seed, for what the files may lack.
        options: of `from_pretrained`.

    Raises:
        WeightsError: a tensor is missing, unexpected, twice there, or of another shape or type.
        ModelError: the files cannot be read.
    """
    try:
        entries = _entries(transformers, place, name)
        if entries is not None:
            _check_size(transformers, config, entries, name)
        module, info = transformers.AutoModel.from_pretrained(
            place, use_safetensors=True, output_loading_info=True, ignore_mismatched_sizes=True, **options
        )
    except AttnAuditError:
        raise
    except Exception as error:  # transformers raises whatever a damaged file or an absurd config leads to
        raise ModelError(f"transformers cannot load {name} ({first_line(error)}).") from error
    notes = _checked(module, info, name)
    _check_types(module, entries or _entries(transformers, place, name) or {}, name)  # perhaps downloaded just now
    if info["missing_keys"]:
        _fill(module, untrained(0), info["missing_keys"])
    return LoadedCheckpoint(module.eval(), notes)


def _entries(transformers: Any, place: str, name: str) -> dict[str, _Entry] | None:
    """What the safetensors files hold, by name; None if there are none here yet."""
    files = _files(transformers, place, name)
    if files is None:
        return None
    entries: dict[str, _Entry] = {}
    for file in files:
        try:
            with safe_open(file, framework="pt") as content:
                for key in content.keys():  # noqa: SIM118 (not a mapping)
                    if key in entries:
                        raise WeightsError(f"{name} has {key} in more than one file.")
                    part = content.get_slice(key)
                    entries[key] = _Entry(part.get_dtype(), torch.Size(part.get_shape()).numel())
        except AttnAuditError:
            raise
        except Exception as error:  # a damaged file
            raise WeightsError(f"{file} cannot be read as weights ({first_line(error)}).") from error
    return entries


def _files(transformers: Any, place: str, name: str) -> list[Path] | None:
    if single := find_file(transformers, place, _WEIGHTS):
        return [single]
    index = find_file(transformers, place, _INDEX)
    if index is None:
        return None
    try:
        names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
        files = [find_file(transformers, place, own) for own in names]
    except Exception as error:  # a damaged index
        raise WeightsError(f"{index} cannot be read as an index of weights ({first_line(error)}).") from error
    if None in files:
        raise WeightsError(f"{name} lacks {names[files.index(None)]}, which {_INDEX} names.")
    return [file for file in files if file is not None]


def _check_size(transformers: Any, config: Any, entries: Mapping[str, _Entry], name: str) -> None:
    described = parameter_count(transformers, config)
    held = sum(entry.elements for entry in entries.values())
    if described is not None and described > _FACTOR * held + _SMALL:
        raise WeightsError(f"{name} has {held:,} numbers in its files, but its config.json describes {described:,}.")


def parameter_count(transformers: Any, config: Any) -> int | None:
    """How many numbers a model has, counted without memory for them; None for models that must be built to know."""
    try:
        with torch.device("meta"):
            module = transformers.AutoModel.from_config(config)
    except NotImplementedError:  # it reads a value while it is built, and there is none
        return None
    return sum(int(parameter.numel()) for parameter in module.parameters())


def _checked(module: Any, info: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """What to say of a loading in which nothing that matters is missing or unexpected."""
    prefix = f"{module.base_model_prefix}." if module.base_model_prefix else None
    children, buffers = {child for child, _ in module.named_children()}, {own for own, _ in module.named_buffers()}
    missing, unexpected = sorted(info["missing_keys"]), []
    heads = []
    for key in sorted(info["unexpected_keys"]):
        inside = prefix is not None and key.startswith(prefix)
        own = key.removeprefix(prefix or "")
        if inside or own.partition(".")[0] in children:
            unexpected += [] if own in buffers else [key]  # buffers that are computed, such as position_ids
        else:
            heads.append(key)
    lacking = [key for key in missing if not key.startswith(_POOLER)]
    shapes = [
        f"{key} {tuple(found)} instead of {tuple(wanted)}"
        for key, found, wanted in sorted(info["mismatched_keys"], key=lambda entry: str(entry[0]))
    ]
    if lacking:
        unexpected += heads  # what is missing may be there under another name
    faults = [
        f"{len(keys)} {kind} ({some_names(keys)})"
        for kind, keys in (("missing", lacking), ("unexpected", unexpected), ("of another shape", shapes))
        if keys
    ]
    faults += [first_line(Exception(str(text))) for text in info.get("error_msgs") or ()]
    if faults:
        raise WeightsError(f"The weights of {name} do not fit its config.json: {', '.join(faults)}.")
    pooler = [key for key in missing if key.startswith(_POOLER)]
    notes = []
    if heads:
        notes.append(f"left out {len(heads)} tensors that are not part of the encoder ({some_names(heads)})")
    if pooler:
        notes.append(
            f"{len(pooler)} tensors of the pooler are missing ({some_names(pooler)}): drawn from seed 0, and not used "
            "by attention"
        )
    return tuple(notes)


def _check_types(module: Any, entries: Mapping[str, _Entry], name: str) -> None:
    """Refuse whole numbers in place of real ones, which are quantised, and two tensors for one parameter."""
    own = module.state_dict()
    prefix = f"{module.base_model_prefix}."
    found: dict[str, str] = {}
    for key, entry in entries.items():
        bare = key.removeprefix(prefix)
        if bare in found:
            raise WeightsError(f"{name} has two tensors for one parameter: {found[bare]} and {key}.")
        found[bare] = key
        if bare in own and own[bare].is_floating_point() and not entry.dtype.startswith(_REAL):
            raise WeightsError(f"{key} of {name} has type {entry.dtype} instead of real numbers: it is quantised.")


def _fill(module: nn.Module, drawn: nn.Module, keys: Iterable[str]) -> None:
    """Take what a checkpoint lacks from a model that was drawn from a seed, so that every loading gives the same."""
    own, theirs = module.state_dict(), drawn.state_dict()
    with torch.no_grad():
        for key in keys:
            own[key].copy_(theirs[key])
