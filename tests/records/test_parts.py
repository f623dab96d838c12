"""Parts: rows and notes come back as they were, and a file that holds anything else is named."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnaudit.errors import RunFolderError
from attnaudit.numerics.digest import content_digest
from attnaudit.records.notes import Notes
from attnaudit.records.parts import check_part, encode_part, key_of, part_name, read_notes, read_part

SCHEMA = pa.schema([("number", pa.int64()), ("name", pa.string())])
TABLE = pa.table({"number": [1, 2, 3], "name": ["a", None, "ä"]}, schema=SCHEMA)
NOTES = Notes((("broken.png", "truncated"),), {"blocks.0": 1e-7}, (("blocks.1", "talking heads"),), {"dense": 12})
CONTENT = encode_part("x", TABLE, NOTES)


def stored(folder, content, key="x"):
    """A file whose digest is right, whatever it holds."""
    path = folder / part_name(key, content)
    path.write_bytes(content)
    return path


@pytest.fixture
def part(tmp_path):
    return stored(tmp_path, CONTENT)


def readers(part):
    return (
        lambda: check_part(part, SCHEMA),
        lambda: read_part(part, SCHEMA, rows=3),
        lambda: read_notes(part),
    )


def test_rows_and_notes_come_back(part):
    check_part(part, SCHEMA)
    assert read_part(part, SCHEMA, rows=3).equals(TABLE)
    assert read_notes(part) == NOTES


def test_equal_content_has_equal_bytes_and_the_same_name():
    assert encode_part("x", TABLE.slice(0), NOTES) == CONTENT
    assert encode_part("x", TABLE, Notes()) != CONTENT
    assert encode_part("y", TABLE, NOTES) != CONTENT
    assert part_name("x", CONTENT) == f"part-x.{content_digest([CONTENT])}.parquet"


def test_a_name_tells_the_key(part, tmp_path):
    assert key_of(part) == "x"
    assert key_of(tmp_path / part_name("a.b-c", b"")) == "a.b-c"
    for other in ("part-x.parquet", "x.parquet", f".{part.name}.abc.tmp"):
        assert key_of(tmp_path / other) is None


def test_no_flipped_bit_is_read_as_other_rows_or_notes(part):
    generator = random.Random(0)
    for _ in range(200):
        place = generator.randrange(8 * len(CONTENT))
        changed = bytearray(CONTENT)
        changed[place // 8] ^= 1 << place % 8
        part.write_bytes(changed)
        for read in readers(part):
            with pytest.raises(RunFolderError, match=f"{part.name} is damaged"):
                read()


def test_rows_have_checksums_of_their_own(part):
    """So that a change after the check is noticed as well."""
    start = CONTENT.index(b"PAR1") + 40
    changed = bytearray(CONTENT)
    changed[start] ^= 1
    with pytest.raises((OSError, pa.ArrowException)):
        pq.read_table(pa.BufferReader(bytes(changed)), page_checksum_verification=True)


@pytest.mark.parametrize(
    "damage",
    [
        lambda part: part.unlink(),
        lambda part: part.write_bytes(CONTENT[:100]),
        lambda part: part.write_bytes(b""),
        lambda part: part.write_bytes(encode_part("y", TABLE.slice(1), NOTES)),
        lambda part: (part.unlink(), part.mkdir()),
        lambda part: (part.unlink(), part.symlink_to("nowhere")),
    ],
)
def test_a_damaged_part_is_named(part, damage):
    damage(part)
    for read in readers(part):
        with pytest.raises(RunFolderError, match=f"{part.name} is damaged"):
            read()


def test_the_part_of_another_unit_is_refused_under_a_name_that_fits_its_bytes(tmp_path):
    part = stored(tmp_path, encode_part("y", TABLE, NOTES), key="x")
    for read in readers(part):
        with pytest.raises(RunFolderError, match=f"{part.name} is damaged"):
            read()


@pytest.mark.parametrize(
    "table",
    [
        TABLE.drop_columns("name"),
        TABLE.rename_columns(["number", "other"]),
        TABLE.set_column(0, "number", pa.array([1, 2, 3], pa.int32())),
    ],
)
def test_another_schema_is_refused(tmp_path, table):
    part = stored(tmp_path, encode_part("x", table, NOTES))
    for read in readers(part)[:2]:
        with pytest.raises(RunFolderError, match=f"{part.name} is damaged"):
            read()


def test_another_number_of_rows_is_refused(part):
    with pytest.raises(RunFolderError, match=f"{part.name} is damaged"):
        read_part(part, SCHEMA, rows=4)


@pytest.mark.parametrize("notes", [None, "{", "[]", '{"skipped": 1}', '{"more": 1}', b"\xff", "[" * 10**5])
def test_notes_of_another_kind_are_refused(tmp_path, notes):
    metadata = {"attnaudit.key": "x"} | ({} if notes is None else {"attnaudit": notes})
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE.replace_schema_metadata(metadata), sink)
    part = stored(tmp_path, sink.getvalue().to_pybytes())
    with pytest.raises(RunFolderError, match=f"{part.name} is damaged"):
        read_notes(part)
