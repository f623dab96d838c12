"""The rows of a run, read as far as they are asked for: a long run has more of them than one wants in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, reduce
from operator import and_
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from attnaudit.errors import RunFolderError, first_line
from attnaudit.records.schema import SCHEMA

#: How many batches and parts are read before they are needed: few, because they take memory until then.
_AHEAD = {"batch_readahead": 1, "fragment_readahead": 2}
#: Up to this many rows, some 120 MB, are read once and kept: every question to the files reads several columns again.
KEPT_ROWS = 2_000_000


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
    def _kept(self) -> pa.Table | None:
        """All rows in one piece, unless there are too many."""
        if len(self) > KEPT_ROWS:
            return None
        with _reading():
            return self._dataset.to_table(use_threads=False, **_AHEAD).unify_dictionaries().combine_chunks()

    def table(self) -> pa.Table:
        """All rows at once."""
        return self.where()

    def where(self, *columns: str, **names: str | Sequence[str]) -> pa.Table:
        """The rows that have these names, or one of several, in these columns; of the `columns` given, or of all."""
        asked = {name: [of] if isinstance(of, str) else list(of) for name, of in names.items()}
        if self._kept is not None:
            wanted = (_has_name(self._kept[name], of) for name, of in asked.items())
            found = self._kept.select(list(columns)) if columns else self._kept
            return found.filter(reduce(pc.and_, wanted)) if asked else found
        filters = (pc.field(name).isin(of) for name, of in asked.items())
        with _reading():
            found = self._dataset.to_table(
                columns=list(columns) or None, filter=reduce(and_, filters) if asked else None, **_AHEAD
            )
        return found.unify_dictionaries()

    def combinations(self, *columns: str) -> list[tuple[str, ...]]:
        """The names that occur together in these columns, in order of their first appearance."""
        found: dict[tuple[str, ...], None] = {}
        with _reading():
            for batch in self._dataset.to_batches(columns=list(columns), **_AHEAD):
                distinct = pa.Table.from_batches([batch]).group_by(columns, use_threads=False).aggregate([])
                found.update(dict.fromkeys(zip(*(distinct[name].to_pylist() for name in columns), strict=True)))
        return list(found)


def _has_name(column: pa.ChunkedArray, names: Sequence[str]) -> pa.BooleanArray:
    """Which rows have one of the names: each name is looked up once, not once per row."""
    rows = column.combine_chunks()
    return pc.is_in(rows.dictionary, value_set=pa.array(names, pa.string())).take(rows.indices)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise RunFolderError(
            f"The evidence cannot be read ({first_line(error)}): repeat the command that wrote it."
        ) from error
