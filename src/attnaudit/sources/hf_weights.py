"""The weights files of a transformers model: which there are, and what tensors are in them.

Newer folders hold safetensors, older ones files of `torch.save`; either may be one file, or several with an index.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import safe_open
from torch import Tensor

from attnaudit.errors import WeightsError, first_line
from attnaudit.sources.hf_tokenizers import find_file
from attnaudit.sources.weights import read_weights

_SAFE, _TORCH = "model.safetensors", "pytorch_model.bin"
#: Names of floating-point types in a safetensors header begin with one of these.
_REAL = ("F", "BF")
Content = TypeVar("Content")


@dataclass(frozen=True)
class TensorEntry:
    """A tensor in a file."""

    dtype: str
    elements: int
    real: bool


@dataclass(frozen=True)
class CheckpointFiles:
    """What the files hold, by name; the tensors themselves only of files that transformers must not read itself."""

    entries: Mapping[str, TensorEntry]
    tensors: Mapping[str, Tensor] | None = field(default=None, repr=False)


def read_checkpoint(
    transformers: Any, place: str, name: str, *, prefix: str = "", download: bool = False
) -> CheckpointFiles:
    """The weights of a folder or hub id: safetensors if there are any, otherwise plain tensors in torch files.

    Args:
        transformers: the library.
        place: the folder or hub id.
        name: what an error calls it.
        prefix: what the names of the network's tensors begin with in these files; it is cut off.
        download: whether the network is allowed.

    Raises:
        WeightsError: there are none, one is missing, damaged or more than plain tensors, or a tensor is in two files.
    """
    safe = _files(transformers, place, name, _SAFE, download)
    if safe and not prefix:
        return CheckpointFiles(_merged(map(_safe_entries, safe), name))
    files = safe or _files(transformers, place, name, _TORCH, download)
    if not files:
        raise WeightsError(f"{name} has no weights: add {_SAFE}, or {_TORCH} of older versions.")
    tensors = {key.removeprefix(prefix): tensor for key, tensor in _merged(map(read_weights, files), name).items()}
    return CheckpointFiles({key: _entry(tensor) for key, tensor in tensors.items()}, tensors)


def _files(transformers: Any, place: str, name: str, single: str, download: bool) -> list[Path]:
    """The file of that name, or all that its index names; none if there are neither."""
    if found := find_file(transformers, place, single, download=download):
        return [found]
    index = find_file(transformers, place, f"{single}.index.json", download=download)
    if index is None:
        return []
    try:
        names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
        files = [find_file(transformers, place, own, download=download) for own in names]
    except Exception as error:  # a damaged index
        raise WeightsError(f"{index} cannot be read as an index of weights ({first_line(error)}).") from error
    if None in files:
        raise WeightsError(f"{name} lacks {names[files.index(None)]}, which {index.name} names.")
    return [file for file in files if file is not None]


def _merged(parts: Iterable[Mapping[str, Content]], name: str) -> dict[str, Content]:
    """All files together; a tensor that is in two of them is an error."""
    merged: dict[str, Content] = {}
    for part in parts:
        if twice := sorted(merged.keys() & part.keys()):
            raise WeightsError(f"{name} has {twice[0]} in more than one file.")
        merged |= part
    return merged


def _safe_entries(file: Path) -> dict[str, TensorEntry]:
    try:
        with safe_open(file, framework="pt") as content:
            parts = {key: content.get_slice(key) for key in content.keys()}  # noqa: SIM118 (not a mapping)
            return {
                key: TensorEntry(
                    part.get_dtype(), torch.Size(part.get_shape()).numel(), part.get_dtype().startswith(_REAL)
                )
                for key, part in parts.items()
            }
    except Exception as error:  # a damaged file
        raise WeightsError(f"{file} cannot be read as weights ({first_line(error)}).") from error


def _entry(tensor: Tensor) -> TensorEntry:
    return TensorEntry(str(tensor.dtype).removeprefix("torch."), tensor.numel(), tensor.is_floating_point())
