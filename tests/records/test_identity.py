"""What is said of a folder that was begun with other settings."""

import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records import json_file
from attnaudit.records.identity import begins

HASH, OTHER = "0123456789abcdef" * 2, "fedcba9876543210" * 2


@pytest.mark.parametrize(
    ("found", "wanted", "words"),
    [
        ({"seed": 0}, {"seed": 1}, "other seed (0 there, 1 here)"),
        (
            {"recipe": {"model": {"width": 16, "depth": 2}, "batch": 8}},
            {"recipe": {"model": {"width": 32, "depth": 2}, "batch": 8}},
            "other recipe (model.width 16 there, 32 here)",
        ),
        (
            {"recipe": {"model": {"heads": [1]}}},
            {"recipe": {"model": {"heads": [1, 2]}}},
            "(model.heads 1 there, 2 here)",
        ),
        ({"data": HASH}, {"data": OTHER}, "other data: give"),
        ({"data": [HASH, HASH]}, {"data": [HASH, OTHER]}, "other data: give"),
        ({"images": [0, 1, 2, 3, 4]}, {"images": [0, 1, 2, 3, 5]}, "other images (of the same number)"),
    ],
)
def test_the_first_difference_is_shown_where_it_says_something(tmp_path, found, wanted, words):
    file = tmp_path / "run" / "run.json"
    file.parent.mkdir()
    json_file.write(file, {"identity": found})
    with pytest.raises(RunFolderError) as error:
        begins(file, wanted)
    assert words in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / 'run'} holds a run with other ")
    assert not begins(file, found)
