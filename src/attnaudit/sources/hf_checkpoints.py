"""Load the checkpoint of a transformers model strictly: whatever does not fit is an error that names it.

transformers draws at random what a file lacks, and drops what it does not know. Two cases are harmless, and are said:
the heads of other tasks, which are not part of the encoder, and a pooler, which comes after all attention.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from attnaudit.errors import AttnAuditError, ModelError, WeightsError, first_line
from attnaudit.sources.hf_configs import FoundConfig
from attnaudit.sources.hf_weights import TensorEntry, read_checkpoint
from attnaudit.sources.weights import some_names

_POOLER = "pooler."
#: A config may describe more than its files hold, but not by orders of magnitude: building it would fill the memory.
_FACTOR, _SMALL = 4, 1 << 28


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A loaded module, and what was left out of the files or filled in."""

    module: nn.Module
    notes: tuple[str, ...]


def load_checkpoint(
    transformers: Any,
    place: str,
    name: str,
    found: FoundConfig,
    untrained: Callable[[int], nn.Module],
    *,
    local_files_only: bool = True,
    **options: Any,
) -> LoadedCheckpoint:
    """The model of a folder or hub id, in evaluation mode; only plain tensors are read.

    Args:
        transformers: the library.
        place: the folder or hub id.
        name: what an error calls it.
        found: the config of the model.
        untrained: builds the module from a seed, for what the files may lack.
        local_files_only: whether the network is not allowed.
        options: other ones of `from_pretrained`.

    Raises:
        WeightsError: a tensor is missing, unexpected, twice there, or of another shape or type.
        ModelError: the files cannot be read.
    """
    config = found.config
    try:
        files = read_checkpoint(transformers, place, name, prefix=found.prefix, download=not local_files_only)
        _check_size(transformers, config, files.entries, name)
        strict = {"config": config, "output_loading_info": True, "ignore_mismatched_sizes": True}
        if files.tensors is None:
            module, info = transformers.AutoModel.from_pretrained(
                place, use_safetensors=True, local_files_only=local_files_only, **strict, **options
            )
        else:
            own = type(_without_memory(transformers, config) or untrained(0))
            module, info = own.from_pretrained(None, state_dict=dict(files.tensors), **strict)  # type: ignore[attr-defined]
    except AttnAuditError:
        raise
    except Exception as error:  # transformers raises whatever a damaged file or an absurd config leads to
        raise ModelError(f"transformers cannot load {name} ({first_line(error)}).") from error
    notes = checked(module, info, name)
    _check_types(module, files.entries, name)
    if info["missing_keys"]:
        _fill(module, untrained(0), info["missing_keys"])
    return LoadedCheckpoint(module.eval(), (*found.notes, *notes))


def _check_size(transformers: Any, config: Any, entries: Mapping[str, TensorEntry], name: str) -> None:
    described = parameter_count(transformers, config)
    held = sum(entry.elements for entry in entries.values())
    if described is not None and described > _FACTOR * held + _SMALL:
        raise WeightsError(f"{name} has {held:,} numbers in its files, but its config.json describes {described:,}.")


def parameter_count(transformers: Any, config: Any) -> int | None:
    """How many numbers a model has, counted without memory for them; None for models that must be built to know."""
    module = _without_memory(transformers, config)
    return None if module is None else sum(int(parameter.numel()) for parameter in module.parameters())


def _without_memory(transformers: Any, config: Any) -> nn.Module | None:
    """The network without values; None for models that must be built with them."""
    try:
        with torch.device("meta"):
            module: nn.Module = transformers.AutoModel.from_config(config)
    except NotImplementedError:  # it reads a value while it is built, and there is none
        return None
    return module


def checked(module: Any, info: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """What to say of a loading in which nothing that matters is missing or unexpected.

    Raises:
        WeightsError: something is.
    """
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
    lacking = [key for key in missing if not key.startswith(_POOLER) and not _follows(module, key)]
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
        many = "tensor that is" if len(heads) == 1 else "tensors that are"
        notes.append(f"left out {len(heads)} {many} not part of the encoder ({some_names(heads)})")
    if pooler:
        notes.append(
            f"{len(pooler)} tensors of the pooler are missing ({some_names(pooler)}): drawn from seed 0, and not used "
            "by attention"
        )
    return tuple(notes)


def _follows(module: Any, key: str) -> bool:
    """Whether a tensor follows from the config, such as sine waves: files need not hold it, as its class says."""
    named = (key, f"{module.base_model_prefix}.{key}")
    return any(re.search(own, name) for own in module._keys_to_ignore_on_load_missing or () for name in named)


def _check_types(module: Any, entries: Mapping[str, TensorEntry], name: str) -> None:
    """Refuse whole numbers in place of real ones, which are quantised, and two tensors for one parameter."""
    own = module.state_dict()
    prefix = f"{module.base_model_prefix}."
    found: dict[str, str] = {}
    for key, entry in entries.items():
        bare = key.removeprefix(prefix)
        if bare in found:
            raise WeightsError(f"{name} has two tensors for one parameter: {found[bare]} and {key}.")
        found[bare] = key
        if bare in own and own[bare].is_floating_point() and not entry.real:
            raise WeightsError(f"{key} of {name} has type {entry.dtype} instead of real numbers: it is quantised.")


def _fill(module: nn.Module, drawn: nn.Module, keys: Iterable[str]) -> None:
    """Take what a checkpoint lacks from a model that was drawn from a seed, so that every loading gives the same."""
    own, theirs = module.state_dict(), drawn.state_dict()
    with torch.no_grad():
        for key in keys:
            own[key].copy_(theirs[key])
