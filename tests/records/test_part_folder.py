"""The parts of a run: one file per unit, of which the newest counts."""

import os

import pyarrow as pa
import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records.notes import Notes
from attnaudit.records.part_folder import PartFolder
from attnaudit.records.parts import encode_part, part_name

SCHEMA = pa.schema([("number", pa.int64())])


def content(key, number):
    return encode_part(key, pa.table({"number": [number]}, schema=SCHEMA), Notes())


@pytest.fixture
def parts(tmp_path):
    parts = PartFolder(tmp_path / "run" / "evidence")
    (tmp_path / "run").mkdir()
    parts.make()
    return parts


def numbers(parts, keys):
    return {key: table["number"].to_pylist() for key, table in parts.tables(dict.fromkeys(keys, 1), SCHEMA).items()}


def test_rows_come_back_in_the_order_in_which_they_are_asked_for(parts):
    for number, key in enumerate("ab"):
        parts.write(key, content(key, number))
    assert list(numbers(parts, "ba").items()) == [("b", [1]), ("a", [0])]


def test_a_part_takes_the_place_of_an_earlier_one_of_its_unit(parts):
    for number in (1, 2):
        parts.write("a", content("a", number))
    assert len(list(parts.path.iterdir())) == 1
    assert numbers(parts, "a") == {"a": [2]}


@pytest.mark.parametrize("newest", [1, 2])
def test_the_newest_part_of_a_unit_counts_if_writing_it_again_was_interrupted(parts, newest):
    for number in (1, 2):
        own = content("a", number)
        file = parts.path / part_name("a", own)
        file.write_bytes(own)
        os.utime(file, ns=(0, number == newest))
    assert numbers(parts, "a") == {"a": [newest]}


def test_a_run_that_lacks_parts_is_named(parts):
    parts.write("a", content("a", 1))
    with pytest.raises(RunFolderError, match=r"run lacks 2 of its 3 parts: repeat its command"):
        parts.notes(["a", "b", "c"])
