"""The batches of a monitor: always the same, so that a curve shows the training and not the data."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor, nn

from attnaudit.capture.capture import Inputs, batch_size
from attnaudit.errors import AttnAuditError, InputError, UsageError
from attnaudit.sources.weights import tensors_fingerprint
from attnaudit.training.preservation import Mode

#: The name of a batch that was given without one.
UNNAMED = "batch"


@dataclass(frozen=True)
class FixedBatch:
    """The inputs of a model, their name, and the mode in which the model is measured."""

    name: str
    inputs: Inputs
    mode: Mode = "eval"

    def __len__(self) -> int:
        return batch_size(self.inputs)

    @property
    def input_names(self) -> tuple[str, ...]:
        """A name for each input of the batch."""
        return tuple(f"{self.name}/{number}" for number in range(len(self)))

    @property
    def fingerprint(self) -> str:
        """A hash of the content."""
        return tensors_fingerprint(
            (name, part) if isinstance(part, Tensor) else (f"{name}={part!r}", torch.empty(0))
            for name, part in _arguments(self.inputs)
        )

    def on(self, device: torch.device) -> Inputs:
        """The inputs, on a device."""
        moved = {name: part.to(device) if isinstance(part, Tensor) else part for name, part in _arguments(self.inputs)}
        if isinstance(self.inputs, Mapping):
            return moved
        values = tuple(moved.values())
        return values if isinstance(self.inputs, tuple) else values[0]


def fixed_batches(
    model: nn.Module, batches: Inputs | Mapping[str, Inputs], mode: Mode | Mapping[str, Mode] = "eval"
) -> tuple[FixedBatch, ...]:
    """One batch, or several by name. A mapping always names batches; each of them may be a mapping of arguments.

    Raises:
        UsageError: there is no batch, a name is an argument of the model or has a slash, or a mode is unknown.
        InputError: a batch holds no tensor with a batch axis.
    """
    named: Mapping[str, Any] = batches if isinstance(batches, Mapping) else {UNNAMED: batches}
    if not named:
        raise UsageError("A monitor needs at least one batch, got none.")
    if not isinstance(model, nn.Module):
        raise UsageError(f"A monitor needs a torch module, got {type(model).__name__}.")
    known = inspect.signature(model.forward).parameters
    arguments = [str(name) for name in named if name in known and isinstance(batches, Mapping)]
    if arguments:
        raise UsageError(
            f"Batches need names, got arguments of {type(model).__name__} ({', '.join(arguments)}): "
            f"name the batch, as in {{'train': {{'{arguments[0]}': …}}}}."
        )
    modes: Mapping[Any, Any] = mode if isinstance(mode, Mapping) else dict.fromkeys(named, mode)
    for name, chosen in modes.items():
        if chosen not in get_args(Mode) or name not in named:
            raise UsageError(f'mode must be "eval" or "train", for all batches or by their names, got {mode!r}.')
    return tuple(_checked(str(name), inputs, modes.get(name, "eval")) for name, inputs in named.items())


def _checked(name: str, inputs: Any, mode: Mode) -> FixedBatch:
    if "/" in name:
        raise UsageError(f"The name of a batch must not contain a slash, got {name!r}.")
    if isinstance(inputs, list):
        raise InputError(f"The batch {name!r} must be a tensor, or a tuple or mapping of arguments, got a list.")
    batch = FixedBatch(name, inputs, mode)
    try:
        len(batch)
    except (AttnAuditError, TypeError) as error:
        raise InputError(
            f"The batch {name!r} holds no tensor with a batch axis: pass the arguments of the model."
        ) from error
    return batch


def _arguments(inputs: Inputs) -> Iterator[tuple[str, Any]]:
    """Names, or numbers, and values."""
    if isinstance(inputs, Mapping):
        yield from inputs.items()
    else:
        values = (inputs,) if isinstance(inputs, Tensor) else inputs
        yield from ((str(number), value) for number, value in enumerate(values))
