"""The numbers behind tables and figures as CSV and Parquet files, written whole or not at all."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from attnaudit.records.files import write_whole


def write_csv(records: Sequence[Any], path: Path) -> None:
    """Dataclass records as one CSV file."""
    write_rows([asdict(record) for record in records], path)


def write_rows(rows: Sequence[Mapping[str, object]], path: Path) -> None:
    """Rows with the same names as one CSV file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def write_parquet(records: Sequence[Any], path: Path, schema: pa.Schema | None = None) -> None:
    """Dataclass records as one Parquet file; without a schema its types follow from the records."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([asdict(record) for record in records], schema), sink, compression="zstd")
    write_whole(path, sink.getvalue().to_pybytes())
