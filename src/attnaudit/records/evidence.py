"""The rows of a run, read once and then asked for: a long run has more of them than one wants in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from attnaudit.errors import RunFolderError, first_line
from attnaudit.records.grouped_rows import Group, GroupedRows
from attnaudit.records.schema import SCHEMA

#: How many batches and parts are read before they are needed: few, because they take memory until then.
_AHEAD = {"batch_readahead": 1, "fragment_readahead": 2}
#: The columns that are read for the first question: all but those that say how heads were measured.
_JUDGED = tuple(name for name in SCHEMA.names if name not in ("protocol", "tokens", "dim", "step"))


class Evidence:
    """Rows, on disk or in memory, that are questioned about one measure at a time."""

    def __init__(self, dataset: ds.Dataset) -> None:
        self._dataset = dataset

    @staticmethod
    def of_parts(parts: Sequence[Path]) -> Evidence:
        """The rows of Parquet parts, in this order."""
        verifying = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
        parquet = ds.ParquetFileFormat(default_fragment_scan_options=verifying)
        return Evidence(ds.dataset([str(part) for part in parts], schema=SCHEMA, format=parquet))

    @staticmethod
    def of_table(table: pa.Table) -> Evidence:
        """Rows that are in memory anyway."""
        return Evidence(ds.dataset(table))

    def __len__(self) -> int:
        with _reading():
            return int(self._dataset.count_rows())

    def __repr__(self) -> str:
        return f"Evidence({len(self):,} rows)"

    @cached_property
    def _judged(self) -> GroupedRows:
        """What claims, statistics and pages ask for."""
        return self._grouped(_JUDGED)

    @cached_property
    def _whole(self) -> GroupedRows:
        """All columns."""
        return self._grouped(SCHEMA.names)

    def _grouped(self, columns: Sequence[str]) -> GroupedRows:
        with _reading():
            schema = self._dataset.schema
            # Part by part: a scan of all of them runs ahead of the sorting, and takes several times the memory.
            parts = (part.to_batches(schema, list(columns), **_AHEAD) for part in self._dataset.get_fragments())
            return GroupedRows(chain.from_iterable(parts), pa.schema([schema.field(name) for name in columns]))

    def table(self) -> pa.Table:
        """All rows at once, in the order in which they were written."""
        with _reading():
            return self._dataset.to_table(**_AHEAD).unify_dictionaries()

    def where(self, *columns: str, **names: str | Sequence[str]) -> pa.Table:
        """The rows that have these names, or one of several, in these columns; of the `columns` given, or of all.

        Those of one model, theory and measure are together, in the order in which they were written.
        """
        shown = columns or tuple(SCHEMA.names)
        asked = {name: {of} if isinstance(of, str) else {*of} for name, of in names.items()}
        rows = self._judged if {*shown, *asked} <= {*_JUDGED} else self._whole
        others = {name: of for name, of in asked.items() if name not in Group._fields}
        found = [SCHEMA.empty_table().select(shown)]
        for group in rows.groups:
            if all(getattr(group, name) in of for name, of in asked.items() if name in Group._fields):
                with _reading():
                    found.append(_selected(rows.rows(group), group, shown, others))
        return pa.concat_tables(found).unify_dictionaries().combine_chunks()

    def combinations(self, *columns: str) -> list[tuple[str, ...]]:
        """The names that occur together in these columns, in order of their first appearance."""
        if {*columns} <= {*Group._fields}:
            groups = self._judged.groups
            return list(dict.fromkeys(tuple(getattr(group, name) for name in columns) for group in groups))
        found: dict[tuple[str, ...], None] = {}
        with _reading():
            for batch in self._dataset.to_batches(columns=list(columns), **_AHEAD):
                distinct = pa.Table.from_batches([batch]).group_by(columns, use_threads=False).aggregate([])
                found.update(dict.fromkeys(zip(*(distinct[name].to_pylist() for name in columns), strict=True)))
        return list(found)


def _selected(rows: pa.Table, group: Group, columns: Sequence[str], names: Mapping[str, Collection[str]]) -> pa.Table:
    """Those of the rows of a group that have one of the names in each column, with the columns that name the group."""
    for name, of in names.items():
        rows = rows.filter(_has_name(rows[name], of))
    nothing = pa.array(np.zeros(rows.num_rows, dtype=np.int32))
    named = {
        name: pa.DictionaryArray.from_arrays(nothing, [own]) for name, own in group._asdict().items() if name in columns
    }
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    return pa.table({name: named[name] if name in named else rows[name] for name in columns}, schema=schema)


def _has_name(column: pa.ChunkedArray, names: Collection[str]) -> pa.BooleanArray:
    """Which rows have one of the names: each name is looked up once, not once per row."""
    rows = column.combine_chunks()
    return pc.is_in(rows.dictionary, value_set=pa.array(list(names), pa.string())).take(rows.indices)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise RunFolderError(
            f"The evidence cannot be read ({first_line(error)}): repeat the command that wrote it."
        ) from error
