"""Shards of inputs, which are sent to a worker and prepared there."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from attnaudit.errors import InputError
from attnaudit.numerics.digest import content_digest, digest
from attnaudit.numerics.finite import first_not_finite
from attnaudit.protocol import Protocol
from attnaudit.sources.model import LoadedModel
from attnaudit.sources.weights import tensor_bytes, without_values

#: Inputs per unit of work: small enough to lose little when killed, and independent of the number of workers; a GPU
#: is through with more images in the same time. (Texts of a unit are padded to one length, so theirs are few.)
_SHARD = {"cpu": 4, "cuda": 50}
#: The most inputs of the first unit: what is shown for context is measured on these, up to the end of a unit.
FIRST_INPUTS = 4


def shard_size(device: str = "cpu") -> int:
    """Inputs per unit of work on a device."""
    return _SHARD.get(device, _SHARD["cpu"])


def cuts(count: int, size: int, *, first: bool = True) -> Iterator[slice]:
    """Which inputs each shard has; the `first` of all shards has few where others have many."""
    start, stop = 0, min(size, FIRST_INPUTS) if first else size
    while start < count:
        yield slice(start, min(stop, count))
        start, stop = stop, stop + size


@dataclass(frozen=True)
class Prepared:
    """A batch for the model (None if nothing could be read), its names, and skipped inputs with reasons.

    With `keep_padding`, padding counts as tokens, as it does in the reproduction study.
    """

    inputs: Tensor | Mapping[str, Tensor] | None
    names: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    keep_padding: bool = False


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


#: A batch as the user passes it: a tensor, or tensors by the names that the model's forward has for them.
Batch = Tensor | Mapping[str, Tensor]


@dataclass(frozen=True)
class TensorShard:
    """Inputs that the user passed as a batch."""

    batch: Batch
    names: tuple[str, ...]
    groups: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> list[tuple[str, str]]:
        """Names and content hashes."""
        tensors = {_ALONE: self.batch} if isinstance(self.batch, Tensor) else self.batch
        words = sorted(tensors)
        rows = zip(*(tensors[word] for word in words), strict=True)
        named = [repr(words).encode()] if words != [_ALONE] else []
        return [(name, _content(words, row, named)) for name, row in zip(self.names, rows, strict=True)]

    def prepare(self, model: LoadedModel, protocol: Protocol, room: int | None = None) -> Prepared:
        """The batch, unchanged."""
        return Prepared(self.batch, self.names)

    def __reduce__(self) -> tuple[Any, ...]:
        """To other processes it goes as bytes: torch would send an open file for every tensor, until there are none."""
        tensors = {_ALONE: self.batch} if isinstance(self.batch, Tensor) else self.batch
        content = save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})
        return _received, (content, self.names, dict(self.groups))


#: The name of a batch that is one tensor, in the bytes that are sent.
_ALONE = ""


def _content(words: Sequence[str], row: Sequence[Tensor], named: Sequence[bytes]) -> str:
    """A hash of the tensors of an input: of their bytes, and of what these are, for the same bytes may be other data.

    The bytes alone come first: run folders of older versions have no more, and are known by it (`records.identity`).
    """
    layout = [[word, str(tensor.dtype), list(tensor.shape)] for word, tensor in zip(words, row, strict=True)]
    return content_digest([*named, *map(tensor_bytes, row)]) + digest(layout, size=8)


def _received(content: bytes, names: tuple[str, ...], groups: dict[str, str]) -> TensorShard:
    tensors = load(content)
    return TensorShard(tensors.get(_ALONE, tensors), names, groups)


def tensor_shards(
    batch: Batch,
    size: int,
    names: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    *,
    first: bool = True,
) -> tuple[TensorShard, ...]:
    """Split a batch into shards; `groups` says what each input belongs to, `first` whether no shard comes before."""
    count = batch_length(batch)
    labels = tuple(names) if names is not None else tuple(f"input-{place}" for place in range(count))
    if len(labels) != count:
        raise InputError(f"Got {len(labels)} names for a batch of {count} inputs.")
    if groups is not None and len(groups) != count:
        raise InputError(f"Got {len(groups)} groups for a batch of {count} inputs.")
    _check_finite(batch, labels)
    return tuple(
        TensorShard(
            batch_part(batch, own),
            labels[own],
            {} if groups is None else dict(zip(labels[own], map(str, groups[own]), strict=True)),
        )
        for own in cuts(count, size, first=first)
    )


def _check_finite(batch: Batch, names: Sequence[str]) -> None:
    for word, tensor in {"": batch}.items() if isinstance(batch, Tensor) else batch.items():
        if (place := first_not_finite(tensor, is_mask="mask" in word or "bias" in word)) is not None:
            raise InputError(
                f"{names[place]}{f' ({word})' if word else ''} holds NaN or infinite numbers, of which no head can be "
                "measured: remove it."
            )


def batch_part(batch: Batch, own: slice) -> Batch:
    """A copy of some inputs of a batch."""
    if isinstance(batch, Tensor):
        return torch.clone(batch[own])
    return {name: torch.clone(tensor[own]) for name, tensor in batch.items()}


def batch_length(batch: Batch) -> int:
    """The number of inputs in a batch.

    Raises:
        InputError: its tensors have different numbers of them, or one cannot be used.
    """
    tensors = {"": batch} if isinstance(batch, Tensor) else dict(batch)
    if not tensors:
        raise InputError("The batch has no tensors: give at least one, such as input_ids.")
    for name, tensor in tensors.items():
        called = f"The input tensor {name}".rstrip()
        if not isinstance(tensor, Tensor):
            raise InputError(
                f"{called} must be a torch tensor, got {type(tensor).__name__} (a tokenizer gives tensors with "
                'return_tensors="pt").'
            )
        if tensor.dim() == 0 or len(tensor) == 0:
            raise InputError(f"{called} must have a non-empty batch axis, got shape {tuple(tensor.shape)}.")
        if fault := without_values(tensor):
            raise InputError(f"{called} of shape {tuple(tensor.shape)} cannot be used: it is {fault}.")
    lengths = {name: len(tensor) for name, tensor in tensors.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"The tensors of a batch must have one number of inputs along their first axis, got {sizes}.")
    return next(iter(lengths.values()))
