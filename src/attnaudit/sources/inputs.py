"""Shards of inputs, which are sent to a worker and prepared there."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from attnaudit.errors import InputError
from attnaudit.numerics.digest import content_digest
from attnaudit.protocol import Protocol
from attnaudit.sources.model import LoadedModel
from attnaudit.sources.weights import tensor_bytes, without_values

#: Inputs per unit of work: small enough to lose little when killed, and independent of the number of workers; a GPU
#: is through with more images in the same time. (Texts of a unit are padded to one length, so theirs are few.)
_SHARD = {"cpu": 4, "cuda": 50}


def shard_size(device: str = "cpu") -> int:
    """Inputs per unit of work on a device."""
    return _SHARD.get(device, _SHARD["cpu"])


@dataclass(frozen=True)
class Prepared:
    """A batch for the model (None if nothing could be read), its names, and skipped inputs with reasons."""

    inputs: Tensor | Mapping[str, Tensor] | None
    names: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...] = ()


class Shard(typing.Protocol):
    """A few inputs that are prepared and run as one batch."""

    @property
    def identity(self) -> list[tuple[str, str]]:
        """Name and content hash of each input."""

    @property
    def groups(self) -> Mapping[str, str]:
        """What inputs belong to, by name; those of one group are not independent. Others stand for themselves."""

    def prepare(self, model: LoadedModel, protocol: Protocol, room: int | None = None) -> Prepared:
        """The batch for the model; making it may take `room` bytes, or any number if None."""


@dataclass(frozen=True)
class TensorShard:
    """Inputs that the user passed as a tensor."""

    tensor: Tensor
    names: tuple[str, ...]
    groups: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> list[tuple[str, str]]:
        """Names and content hashes."""
        return [(name, content_digest([tensor_bytes(row)])) for name, row in zip(self.names, self.tensor, strict=True)]

    def prepare(self, model: LoadedModel, protocol: Protocol, room: int | None = None) -> Prepared:
        """The tensor, unchanged."""
        return Prepared(self.tensor, self.names)


def tensor_shards(
    tensor: Tensor, size: int, names: Sequence[str] | None = None, groups: Sequence[str] | None = None
) -> tuple[TensorShard, ...]:
    """Split a batch into shards; `groups` says what each input belongs to."""
    if tensor.dim() == 0 or len(tensor) == 0:
        raise InputError(f"The input tensor must have a non-empty batch axis, got shape {tuple(tensor.shape)}.")
    if fault := without_values(tensor):
        raise InputError(f"The input tensor of shape {tuple(tensor.shape)} cannot be used: it is {fault}.")
    labels = tuple(names) if names is not None else tuple(f"input-{place}" for place in range(len(tensor)))
    if len(labels) != len(tensor):
        raise InputError(f"Got {len(labels)} names for a batch of {len(tensor)} inputs.")
    if groups is not None and len(groups) != len(tensor):
        raise InputError(f"Got {len(groups)} groups for a batch of {len(tensor)} inputs.")
    starts = [slice(start, start + size) for start in range(0, len(tensor), size)]
    return tuple(
        TensorShard(
            torch.clone(tensor[own]),
            labels[own],
            {} if groups is None else dict(zip(labels[own], map(str, groups[own]), strict=True)),
        )
        for own in starts
    )
