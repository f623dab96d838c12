"""A part of a run folder: the rows of one unit as a Parquet file, with its notes in the file's metadata."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from attnaudit.errors import RunFolderError, UsageError
from attnaudit.records import json_file
from attnaudit.records.notes import Notes

#: The entry of the metadata that holds the notes.
_NOTES = b"attnaudit"


def encode_part(table: pa.Table, notes: Notes) -> bytes:
    """The content of a part; equal units give equal bytes, wherever they were computed."""
    sink = pa.BufferOutputStream()
    annotated = table.replace_schema_metadata({_NOTES: json.dumps(json_file.plain(notes))})
    pq.write_table(annotated, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_part(part: Path, schema: pa.Schema, rows: int) -> pa.Table:
    """The rows of a part.

    Raises:
        RunFolderError: it is damaged, or has other columns or another number of rows.
    """
    try:
        found = pq.read_table(part)
    except (OSError, pa.ArrowInvalid) as error:
        raise _damaged(part) from error
    if found.schema.names != schema.names or len(found) != rows:
        raise _damaged(part)
    return found


def read_notes(part: Path) -> Notes:
    """The notes of a part.

    Raises:
        RunFolderError: it is damaged, or has none.
    """
    try:
        metadata = pq.read_metadata(part).metadata or {}
        return json_file.parse(Notes, json.loads(metadata[_NOTES]), part.name)
    except (OSError, KeyError, ValueError, UsageError) as error:  # Arrow's errors are ValueErrors
        raise _damaged(part) from error


def _damaged(part: Path) -> RunFolderError:
    return RunFolderError(f"{part} is damaged: delete it and repeat the command to compute it again.")
