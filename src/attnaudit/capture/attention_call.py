"""One attention call as the recorder saw it, before it becomes `Heads`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Places:
    """Where the units of a call belong, as far as labels tell: numbers of inputs, and of columns of the projections.

    Units with different columns are different heads; `key` tells heads that share their keys.
    """

    sample: Int[Tensor, "units"] | None
    query: Int[Tensor, "units"] | None
    key: Int[Tensor, "units"] | None
    value: Int[Tensor, "units"] | None
    heads: int | None = None

    @property
    def numbers(self) -> tuple[object, ...]:
        """All of it, in a form that can be looked up."""
        labels = (self.sample, self.query, self.key, self.value)
        return (*(None if label is None else tuple(label.tolist()) for label in labels), self.heads)


@dataclass(frozen=True)
class TokenPlaces:
    """The tokens of the inputs that queries and keys were made for, as far as labels tell: all, and those of each unit.

    Those of units are asked for where some keys are masked. `same` says whether queries and keys come from the same
    rows, as in self-attention; None if that is not known.
    """

    all_queries: Int[Tensor, "queries"] | None
    all_keys: Int[Tensor, "tokens"] | None
    query: Int[Tensor, "units queries"] | None = None
    key: Int[Tensor, "units tokens"] | None = None
    same: bool | None = None


@dataclass(frozen=True)
class ValueSource:
    """What the value projection was applied to, and which of its rows are the tokens of each unit."""

    rows: Float[Tensor, "rows width"]
    tokens: Int[Tensor, "units tokens"]


@dataclass(frozen=True)
class AttentionCall:
    """One softmax(QKᵀ·scale + bias)V as the model ran it; a unit is a head of an input (and of a window).

    `sink` is the logit of a key without a value, `softcap` c makes the logits c·tanh(QKᵀ·scale / c) + bias, `rotated`
    says that positions were multiplied into the keys, `precision` in which type the softmax was computed. A module may
    ask for some windows of each input only, `windows_kept`; `from_input` says that something of it is seen to depend on
    the input. `execution` numbers the forward passes of modules.
    """

    query: Float[Tensor, "units queries dim"]
    key: Float[Tensor, "units tokens dim"]
    value: Float[Tensor, "units tokens value_dim"]
    output: Float[Tensor, "units queries value_dim"]
    scale: Float[Tensor, "units"]
    bias: Float[Tensor, "units queries tokens"] | None
    places: Places
    precision: torch.dtype
    sink: Float[Tensor, "units queries"] | None = None
    softcap: float | None = None
    source: ValueSource | None = None
    rotated: bool = False
    from_input: bool = True
    windows_kept: int | None = None
    tokens: TokenPlaces | None = None
    execution: int | None = None


@dataclass(frozen=True)
class Refusal:
    """An attention layer that was not captured, and the reason."""

    layer: str
    reason: str


class NotCapturable(Exception):
    """The call is attention, but not of the form softmax(QKᵀ·scale + bias)V; the message says why."""


class NotValues(Exception):
    """Attention weights are multiplied by something else than values, as those by which a model selects tokens."""
