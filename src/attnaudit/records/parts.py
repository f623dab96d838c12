"""A part of a run folder: the rows of one unit as a Parquet file, with key and notes in the file's metadata.

Its name, `part-<key>.<digest>.parquet`, has a digest of its bytes. So a file that was changed on disk, or copied over
another one, is noticed before its rows are used.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from attnaudit.errors import RunFolderError, UsageError
from attnaudit.numerics.digest import content_digest
from attnaudit.records import json_file
from attnaudit.records.notes import Notes

#: The entries of the metadata that hold the notes, and the key of the unit.
_NOTES = b"attnaudit"
_KEY = b"attnaudit.key"
_NAME = re.compile(r"part-(?P<key>.+)\.(?P<digest>[0-9a-f]{32})\.parquet")
#: What reading a damaged file can raise; Arrow's errors are among them.
_DAMAGED = (OSError, ValueError, LookupError, TypeError, MemoryError, RecursionError, pa.ArrowException, UsageError)


def encode_part(key: str, table: pa.Table, notes: Notes) -> bytes:
    """The content of a part; equal units give equal bytes, wherever they were computed."""
    sink = pa.BufferOutputStream()
    metadata = {_KEY: key, _NOTES: json.dumps(json_file.plain(notes))}
    whole = table.combine_chunks().replace_schema_metadata(metadata)  # many small pieces take ten times as long
    pq.write_table(whole, sink, compression="zstd", write_page_checksum=True)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def part_name(key: str, content: bytes) -> str:
    """The name of the file with this content."""
    return f"part-{key}.{content_digest([content])}.parquet"


def key_of(part: Path) -> str | None:
    """The key in the name of a part; None for a file that is not named like one."""
    found = _NAME.fullmatch(part.name)
    return None if found is None else found["key"]


def check_part(part: Path, schema: pa.Schema) -> None:
    """Check that a part holds what was once written into it.

    Raises:
        RunFolderError: its bytes, its key or its columns are others.
    """
    _verified(part, schema)


def read_notes(part: Path, schema: pa.Schema | None = None) -> Notes:
    """The notes of a part that holds what was once written into it, with these columns if they are given.

    Raises:
        RunFolderError: it is damaged, or has none.
    """
    _, metadata = _verified(part, schema)
    try:
        return json_file.parse(Notes, json.loads(metadata[_NOTES]), part.name)
    except _DAMAGED as error:
        raise damaged(part) from error


def read_part(part: Path, schema: pa.Schema, rows: int | None = None) -> pa.Table:
    """The rows of a part, which must be so many, if that is known.

    Raises:
        RunFolderError: it is damaged, or has other columns or another number of rows.
    """
    try:
        content, _ = _verified(part, schema)
        found = pq.read_table(content, page_checksum_verification=True)
    except _DAMAGED as error:
        raise damaged(part) from error
    if rows is not None and len(found) != rows:
        raise damaged(part)
    return found


def damaged(part: Path) -> RunFolderError:
    """The error for a part that is not what was written."""
    return RunFolderError(f"{part} is damaged: repeat the command that wrote it, to compute it again.")


def _verified(part: Path, schema: pa.Schema | None = None) -> tuple[pa.BufferReader, dict[bytes, bytes]]:
    """The content of a part and its metadata, after a check of its digest, its key and, if given, its columns."""
    named = _NAME.fullmatch(part.name)
    try:
        content = part.read_bytes()
        if named is None or content_digest([content]) != named["digest"]:
            raise damaged(part)
        found = pq.read_schema(pa.BufferReader(content))
    except _DAMAGED as error:
        raise damaged(part) from error
    metadata = found.metadata or {}
    other_columns = schema is not None and found.remove_metadata() != schema.remove_metadata()
    if other_columns or metadata.get(_KEY) != named["key"].encode():
        raise damaged(part)
    return pa.BufferReader(content), metadata
