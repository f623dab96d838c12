"""Parts: rows and notes come back as they were, and a damaged file is named."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records.notes import Notes
from attnaudit.records.parts import encode_part, read_notes, read_part

SCHEMA = pa.schema([("number", pa.int64()), ("name", pa.string())])
TABLE = pa.table({"number": [1, 2, 3], "name": ["a", None, "ä"]}, schema=SCHEMA)
NOTES = Notes((("broken.png", "truncated"),), {"blocks.0": 1e-7}, (("blocks.1", "talking heads"),), {"dense": 12})


@pytest.fixture
def part(tmp_path):
    path = tmp_path / "part-x.parquet"
    path.write_bytes(encode_part(TABLE, NOTES))
    return path


def test_rows_and_notes_come_back(part):
    assert read_part(part, SCHEMA, rows=3).equals(TABLE)
    assert read_notes(part) == NOTES


def test_equal_content_has_equal_bytes():
    assert encode_part(TABLE, NOTES) == encode_part(TABLE.slice(0), NOTES)
    assert encode_part(TABLE, NOTES) != encode_part(TABLE, Notes())


def truncate(part):
    part.write_bytes(part.read_bytes()[:100])


def drop_column(part):
    pq.write_table(pq.read_table(part).drop_columns("name"), part)


def drop_row(part):
    pq.write_table(pq.read_table(part).slice(1), part)


@pytest.mark.parametrize("damage", [lambda part: part.unlink(), truncate, drop_column, drop_row])
def test_a_part_with_damaged_rows_is_named(part, damage):
    damage(part)
    with pytest.raises(RunFolderError, match=f"{part.name} is damaged"):
        read_part(part, SCHEMA, rows=3)


def replace_notes(text):
    def replace(part):
        pq.write_table(pq.read_table(part).replace_schema_metadata({"attnaudit": text}), part)

    return replace


def drop_notes(part):
    pq.write_table(pq.read_table(part).replace_schema_metadata(None), part)


@pytest.mark.parametrize(
    "damage",
    [
        lambda part: part.unlink(),
        truncate,
        drop_notes,
        replace_notes("{"),
        replace_notes("[]"),
        replace_notes('{"skipped": 1}'),
        replace_notes('{"more": 1}'),
        replace_notes(b"\xff"),
    ],
)
def test_a_part_with_damaged_notes_is_named(part, damage):
    damage(part)
    with pytest.raises(RunFolderError, match=f"{part.name} is damaged"):
        read_notes(part)
