"""Rows in the order of questions: evidence is written input by input, and read measure by measure.

One pass over the parts sorts them by model, theory and measure. What does not fit into memory goes to temporary files,
from which a question reads what it asks for and nothing else.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

#: Rows that are sorted together.
SORTED_AT_ONCE = 250_000
#: As many rows as this, some 30 MB, stay in memory.
ROWS_IN_MEMORY = 1_000_000


class Group(NamedTuple):
    """What is asked for together."""

    model: str
    theory: str
    measure: str


class GroupedRows:
    """The rows of every group, in the order in which they were written; groups in order of their first row."""

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
        self._schema = pa.schema([field for field in schema if field.name not in Group._fields])
        self._sorted: list[_SortedRows] = []
        count = 0
        for table in _portions(batches, schema):
            count += table.num_rows
            self._sorted.append(_SortedRows.of(table, self._schema, in_memory=count <= ROWS_IN_MEMORY))
        self.groups = tuple(dict.fromkeys(group for own in self._sorted for group in own.batches))

    def rows(self, group: Group) -> pa.Table:
        """The rows of a group, without the columns that name it."""
        found = [own.reader.get_batch(own.batches[group]) for own in self._sorted if group in own.batches]
        return pa.Table.from_batches(found, self._schema).unify_dictionaries().combine_chunks()


def _portions(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Tables that are worth sorting, and small enough to be in memory several times."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(own.num_rows for own in waiting) >= SORTED_AT_ONCE:
            yield pa.Table.from_batches(waiting, schema)
            waiting.clear()
    if waiting:
        yield pa.Table.from_batches(waiting, schema)


@dataclass(frozen=True)
class _SortedRows:
    """Some of the rows, sorted by group: `batches` has the number of the record batch of each."""

    batches: dict[Group, int]
    reader: pa.RecordBatchFileReader

    @staticmethod
    def of(table: pa.Table, schema: pa.Schema, *, in_memory: bool) -> _SortedRows:
        table = table.unify_dictionaries().combine_chunks()
        names = [table[name].combine_chunks() for name in Group._fields]
        codes = np.zeros(table.num_rows, dtype=np.int64)
        for column in names:
            codes = codes * len(column.dictionary) + column.indices.to_numpy()
        codes = codes.astype(np.min_scalar_type(int(codes.max(initial=0))))  # small numbers are sorted much faster
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order].astype(np.int64), prepend=-1))
        sizes = np.diff(starts, append=len(order))
        rows = table.select(schema.names).take(pa.array(order)).combine_chunks()
        first_rows = order[starts]
        found = np.argsort(first_rows).tolist()
        groups = [Group(*(column[int(first_rows[place])].as_py() for column in names)) for place in found]
        slices = [rows.slice(int(starts[place]), int(sizes[place])) for place in found]
        return _SortedRows({group: place for place, group in enumerate(groups)}, _stored(slices, schema, in_memory))


def _stored(tables: Sequence[pa.Table], schema: pa.Schema, in_memory: bool) -> pa.RecordBatchFileReader:
    """Tables as record batches, to be read one at a time; in memory too if there is no room for a temporary file."""
    if not in_memory:
        with suppress(OSError):
            file = tempfile.TemporaryFile()  # noqa: SIM115 it is gone when its reader is
            _write(tables, schema, pa.PythonFile(file, "w"))
            return pa.ipc.open_file(pa.PythonFile(file, "r"))
    sink = pa.BufferOutputStream()
    _write(tables, schema, sink)
    return pa.ipc.open_file(sink.getvalue())


def _write(tables: Sequence[pa.Table], schema: pa.Schema, sink: pa.NativeFile) -> None:
    with pa.ipc.new_file(sink, schema) as writer:
        for table in tables:
            writer.write_table(table)
