"""The batches a monitor looks at: always the same, so that a curve shows the training and not the data."""

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
from attnaudit.training.untouched import Mode

#: How a batch is called that was given without a name.
ONLY = "batch"


@dataclass(frozen=True)
class FixedBatch:
    """What the model is called with, under a name, and in which mode it then is."""

    name: str
    inputs: Inputs
    mode: Mode = "eval"

    def __len__(self) -> int:
        return batch_size(self.inputs)

    @property
    def input_names(self) -> tuple[str, ...]:
        """A name for each input of the batch."""
        return tuple(f"{self.name}/{place}" for place in range(len(self)))

    @property
    def fingerprint(self) -> str:
        """A hash of the content."""
        return tensors_fingerprint(
            (place, part) if isinstance(part, Tensor) else (f"{place}={part!r}", torch.empty(0))
            for place, part in _parts(self.inputs)
        )

    def on(self, device: torch.device) -> Inputs:
        """The inputs, where the model is."""
        moved = {place: part.to(device) if isinstance(part, Tensor) else part for place, part in _parts(self.inputs)}
        if isinstance(self.inputs, Mapping):
            return moved
        values = tuple(moved.values())
        return values if isinstance(self.inputs, tuple) else values[0]


def fixed_batches(
    model: nn.Module, batches: Inputs | Mapping[str, Inputs], mode: Mode | Mapping[str, Mode] = "eval"
) -> tuple[FixedBatch, ...]:
    """One batch, or several by name. A mapping always names batches: those of keyword arguments stand inside it.

    Raises:
        UsageError: a mapping of the model's arguments was given where names are expected, or nothing at all, or a mode
            that there is not.
        InputError: a batch holds no tensor with a batch axis.
    """
    named: Mapping[str, Any] = batches if isinstance(batches, Mapping) else {ONLY: batches}
    if not named:
        raise UsageError("A monitor needs a batch to look at: none was given.")
    known = inspect.signature(model.forward).parameters
    arguments = [str(name) for name in named if name in known and isinstance(batches, Mapping)]
    if arguments:
        raise UsageError(
            f"{', '.join(arguments)} are arguments of {type(model).__name__}, not names of batches: "
            f"give the batch a name, as in {{'train': {{'{arguments[0]}': …}}}}."
        )
    modes: Mapping[Any, Any] = mode if isinstance(mode, Mapping) else dict.fromkeys(named, mode)
    for name, chosen in modes.items():
        if chosen not in get_args(Mode) or name not in named:
            raise UsageError(f'mode is {mode!r}: it is "eval" or "train", or one of them for the name of a batch.')
    return tuple(_checked(str(name), inputs, modes.get(name, "eval")) for name, inputs in named.items())


def _checked(name: str, inputs: Any, mode: Mode) -> FixedBatch:
    if "/" in name:
        raise UsageError(f"The batch {name!r} has a stroke in its name, which separates a batch from its inputs.")
    if isinstance(inputs, list):
        raise InputError(f"The batch {name!r} is a list: give a tensor, a tuple of arguments, or a mapping of them.")
    batch = FixedBatch(name, inputs, mode)
    try:
        len(batch)
    except (AttnAuditError, TypeError) as error:
        raise InputError(
            f"The batch {name!r} holds no tensor with a batch axis: give what the model is called with."
        ) from error
    return batch


def _parts(inputs: Inputs) -> Iterator[tuple[str, Any]]:
    if isinstance(inputs, Mapping):
        yield from inputs.items()
    else:
        yield from (
            (str(place), part) for place, part in enumerate((inputs,) if isinstance(inputs, Tensor) else inputs)
        )
