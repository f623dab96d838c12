"""From measurements to rows of evidence: the columns of many at once, because one by one takes as long as measuring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnaudit.protocol import Protocol
from attnaudit.records.head_id import HeadId
from attnaudit.records.schema import SCHEMA, Measurement, RowKey

#: Tensors that wait for the next copy from their device: copying each would wait for a GPU thousands of times.
_COPIED_AT_ONCE = 256


@dataclass(frozen=True)
class _RowBlock:
    """The rows of one measure of one measurement, apart from their numbers; `heads` is a place among all indices."""

    heads: int
    key: RowKey
    measure: str
    problems: Sequence[str | None]
    protocol: Protocol
    tokens: int
    dim: int


def rows_of(measurements: Iterable[Measurement]) -> pa.Table:
    """Evidence rows of batches of heads; a number that is not finite becomes null, with a reason.

    Measurements are taken one by one, and only their numbers are kept: their heads need not be in memory all at once.
    """
    indices, blocks = _Indices(), list[_RowBlock]()
    waiting, numbers = list[Tensor](), list[NDArray[np.float64]]()
    for own in measurements:
        heads, count = own.heads, len(own.heads.index)
        for measure, tensor in own.values.items():
            place, problems = indices.place(heads.index), own.problems[measure]
            blocks.append(_RowBlock(place, own.key, measure, problems, own.protocol, heads.tokens, heads.dim))
            waiting.append(tensor.reshape(count))
        if len(waiting) >= _COPIED_AT_ONCE:
            numbers += _copied(waiting)
            waiting.clear()
    numbers += _copied(waiting)
    if not blocks:
        return SCHEMA.empty_table()
    return _table(blocks, indices, np.concatenate(numbers))


def _copied(tensors: Sequence[Tensor]) -> list[NDArray[np.float64]]:
    """The numbers of these tensors, in order, with one copy for each change of device."""
    return [
        torch.cat([tensor.double() for tensor in own]).numpy(force=True)
        for _, own in groupby(tensors, lambda tensor: tensor.device)
    ]


class _Indices:
    """The heads of all measurements: those of the same batch are listed once."""

    def __init__(self) -> None:
        self._places: dict[tuple[HeadId, ...], int] = {}
        self._last: tuple[tuple[HeadId, ...], int] | None = None

    def place(self, index: tuple[HeadId, ...]) -> int:
        """The number of an index, which most often is the one before."""
        if self._last is None or self._last[0] is not index:
            self._last = index, self._places.setdefault(index, len(self._places))
        return self._last[1]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many heads each has."""
        return np.array([len(index) for index in self._places], dtype=np.int64)

    def column(self, name: str, blocks: NDArray[np.int64]) -> pa.Array:
        """One field of the heads of all rows; `blocks` has the index of each block of rows."""
        fields = [[getattr(head, name) for head in index] for index in self._places]
        names = _Names()
        if isinstance(fields[0][0] if fields[0] else "", str):
            codes = [np.array([names.code(own) for own in values], dtype=np.int32) for values in fields]
            return names.column(np.concatenate([codes[place] for place in blocks]))
        numbers = [np.array(values, dtype=np.int16) for values in fields]
        return pa.array(np.concatenate([numbers[place] for place in blocks]))


@dataclass(frozen=True)
class _Names:
    """Names as numbers, in order of their first appearance."""

    codes: dict[str, int] = field(default_factory=dict)

    def code(self, name: str) -> int:
        return self.codes.setdefault(name, len(self.codes))

    def column(self, codes: NDArray[np.int32], missing: NDArray[np.bool_] | None = None) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=missing), pa.array(list(self.codes), pa.string()))


def _table(blocks: Sequence[_RowBlock], indices: _Indices, numbers: NDArray[np.float64]) -> pa.Table:
    heads = np.array([block.heads for block in blocks])
    sizes = indices.sizes[heads]

    def named(values: Iterable[str]) -> pa.DictionaryArray:
        names = _Names()
        return names.column(np.repeat(np.array([names.code(value) for value in values], dtype=np.int32), sizes))

    def numbered(values: Iterable[int], kind: type[np.integer]) -> pa.Array:
        return pa.array(np.repeat(np.fromiter(values, dtype=kind), sizes))

    missing = ~np.isfinite(numbers)
    columns = {
        **{name: indices.column(name, heads) for name in HeadId._fields},
        "theory": named(block.key.theory for block in blocks),
        "reference": named(block.key.reference for block in blocks),
        "repeat": numbered((block.key.repeat for block in blocks), np.int16),
        "measure": named(block.measure for block in blocks),
        "value": pa.array(numbers, mask=missing),
        "reason": _reasons(blocks, sizes, missing),
        "protocol": named(block.protocol.value for block in blocks),
        "tokens": numbered((block.tokens for block in blocks), np.int32),
        "dim": numbered((block.dim for block in blocks), np.int16),
        "step": pa.nulls(len(numbers), pa.int64()),
    }
    return pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA)


def _reasons(blocks: Sequence[_RowBlock], sizes: NDArray[np.int64], missing: NDArray[np.bool_]) -> pa.DictionaryArray:
    """Why numbers are missing; most blocks have all of theirs."""
    names, codes = _Names(), np.zeros(len(missing), dtype=np.int32)
    ends = np.cumsum(sizes)
    rows = np.flatnonzero(missing)
    for row, place in zip(rows.tolist(), np.searchsorted(ends, rows, side="right").tolist(), strict=True):
        block = blocks[place]
        problem = block.problems[row - int(ends[place] - sizes[place])]
        codes[row] = names.code(problem or f"{block.measure} is not finite")
    return names.column(codes, ~missing)
