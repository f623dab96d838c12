"""What a reference is: heads whose right answer is known, without which no measure says anything.

A *null* breaks the link between keys and values, an *ideal* plants values that satisfy the theory exactly, up to the
order and signs it leaves free. References keep the queries and keys, so the spectrum of the keys is shared and a
reference costs only its measures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.primal import PrimalKernel
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.numerics.randomness import numpy_generator
from attnaudit.records.head_id import HeadId
from attnaudit.records.schema import Role
from attnaudit.theories.checking import check_values

__all__ = ["PrimalReferenceInput", "Reference", "ReferenceInput", "Role", "generator_for"]


@dataclass(frozen=True)
class ReferenceInput:
    """What the values of a reference are made from: heads, the prediction to plant, another layer, and a seed."""

    heads: Heads
    prediction: Prediction
    other_layer: Heads | None
    seed: int
    repeat: int = 0


@dataclass(frozen=True)
class PrimalReferenceInput:
    """What the weights of a reference are made from, for Primal-Attention, which has no values."""

    heads: PrimalHeads
    kernel: PrimalKernel
    seed: int
    repeat: int = 0


@dataclass(frozen=True)
class Reference:
    """A reference; one of your own can be passed to `attnaudit.audit(references=[…])`.

    Attributes:
        name: under which its numbers are stored.
        text: what it is, in a line.
        role: what it is for.
        values: the values of every head, `(heads, tokens, value_dim)`, or None where it does not apply to these heads.
        weights: the same heads of Primal-Attention with other weights, or None where it does not apply.
        random: whether it draws random numbers, by `generator_for` or `streams`, and so differs from repeat to repeat.
        network: whether it is captured from a network of its own instead, the untrained twin of the model.
        fitted: whether its values are fitted to other inputs instead, by `measures.ceiling`.
        heads: instead of values, the same heads with other keys, for theories that are fitted to inputs.
        for_fits: the values where one map is fitted to all inputs, if they are others then.
        uses_prediction: whether its values depend on the theory; otherwise all theories share them.
    """

    name: str
    text: str
    role: Role
    values: Callable[[ReferenceInput], Tensor | None] | None = None
    weights: Callable[[PrimalReferenceInput], PrimalHeads | None] | None = None
    random: bool = True
    network: bool = False
    fitted: bool = False
    heads: Callable[[ReferenceInput], Heads | None] | None = None
    for_fits: Callable[[ReferenceInput], Tensor | None] | None = None
    uses_prediction: bool = True

    def apply(self, given: ReferenceInput, keys: KeyKernel, *, for_fits: bool = False) -> Heads | None:
        """Heads with other values, and the outputs these values would have given; `keys` are of the same heads.

        `for_fits` says whether they are for a theory that is fitted to several inputs.

        Raises:
            UsageError: a reference of the user returned no tensor.
            ShapeError: its values do not have the shape of those of the heads.
        """
        if self.heads is not None:
            return self.heads(given) if for_fits else None
        make = (self.for_fits if for_fits else None) or self.values
        values = None if make is None else make(given)
        if values is None:
            return None
        check_values(f"reference {self.name!r}", values, keys.heads)
        return with_values(keys, values)

    def apply_primal(self, given: PrimalReferenceInput) -> PrimalHeads | None:
        """Heads of Primal-Attention with other weights; the kernel stays."""
        return None if self.weights is None else self.weights(given)


def with_values(keys: KeyKernel, values: Tensor) -> Heads:
    """The same heads with other values, and the outputs that these would have given."""
    return replace(keys.heads, value=values.double(), output=keys.attended(values))


def generator_for(entry: HeadId, seed: int, repeat: int, purpose: str) -> np.random.Generator:
    """A stream of its own for every head, repeat and purpose, whatever batch the head is in."""
    return numpy_generator(_stream(entry, seed, repeat, purpose))


def streams(index: Sequence[HeadId], seed: int, repeat: int, purpose: str) -> list[str]:
    """The names of these streams, for `numerics.randomness`, which draws many heads at once."""
    return [_stream(entry, seed, repeat, purpose) for entry in index]


def _stream(entry: HeadId, seed: int, repeat: int, purpose: str) -> str:
    return f"{seed}/{repeat}/{purpose}/{entry.input}/{entry.layer}/{entry.head}/{entry.window}"
