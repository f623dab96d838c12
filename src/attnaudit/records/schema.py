"""The one table everything else is made from: one row per head, reference and measure."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from attnaudit.protocol import Protocol
from attnaudit.records.head_id import HeadId

if typing.TYPE_CHECKING:
    from torch import Tensor

#: Raised when the meaning of a number changes, so that older parts are not taken for newer ones.
VERSION = 11

OBSERVED = "observed"
#: A measure of observed heads that is 1 for those that can tell a theory from chance; null, with a reason, for others.
IDENTIFIABLE = "identifiable"
#: The same for heads of which a theory can be true; null, with the theorem, for those of which it cannot.
POSSIBLE = "possible"
_NAME = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("model", _NAME),
        pa.field("input", _NAME),
        pa.field("layer", pa.int16()),
        pa.field("head", pa.int16()),
        pa.field("window", pa.int16()),
        pa.field("theory", _NAME),  # the theory whose prediction the values are compared with
        pa.field("reference", _NAME),
        pa.field("repeat", pa.int16()),
        pa.field("measure", _NAME),
        pa.field("value", pa.float64()),  # null where it could not be computed
        pa.field("reason", _NAME),  # why it is null
        pa.field("protocol", _NAME),
        pa.field("tokens", pa.int32()),
        pa.field("dim", pa.int16()),
        pa.field("step", pa.int64()),  # null unless the row comes from training
    ]
)


class Role(StrEnum):
    """What a reference is for.

    NULL is a network that knows nothing of the theory, score 0; IDEAL is the theory itself, score 1; CEILING is the
    best that a network could have; SENSITIVITY is the theory with some noise; CONTEXT is shown beside them and decides
    nothing.
    """

    NULL = "null"
    IDEAL = "ideal"
    CEILING = "ceiling"
    SENSITIVITY = "sensitivity"
    CONTEXT = "context"


class Indexed(typing.Protocol):
    """What rows have to know of a batch of heads."""

    @property
    def index(self) -> tuple[HeadId, ...]:
        """Where each head comes from."""

    @property
    def tokens(self) -> int:
        """Tokens of each head."""

    @property
    def dim(self) -> int:
        """Columns that are compared."""


@dataclass(frozen=True)
class RowKey:
    """The theory that a batch of heads was compared with, and with whose values."""

    theory: str
    reference: str = OBSERVED
    repeat: int = 0


@dataclass(frozen=True)
class Measurement:
    """Measures by name, one number per head, and for each the reasons why numbers are missing, where they are known."""

    heads: Indexed
    key: RowKey
    values: Mapping[str, Tensor]
    problems: Mapping[str, Sequence[str | None]]
    protocol: Protocol


def at_step(table: pa.Table, step: int) -> pa.Table:
    """The same rows, as of a step of training."""
    place = SCHEMA.get_field_index("step")
    return table.set_column(place, SCHEMA.field(place), pa.array([step] * table.num_rows, SCHEMA.field(place).type))
