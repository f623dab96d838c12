"""A table of costs is read as it was written, or refused in one sentence."""

import pytest

from attnaudit.errors import RunFolderError
from attnaudit.records import json_file
from attnaudit.records.cost import COST_FILE, read_costs
from tests.cost.tables import table


def test_a_table_is_read_as_it_was_written_from_its_folder_or_file(tmp_path):
    whole = table(sizes=("tiny", "small"))
    json_file.write(tmp_path / COST_FILE, whole)
    assert read_costs(tmp_path) == read_costs(tmp_path / COST_FILE) == whole


def test_a_number_that_was_changed_is_noticed(tmp_path):
    file = tmp_path / COST_FILE
    json_file.write(file, table())
    file.write_text(file.read_text().replace('"memory": 1000000', '"memory": 900000', 1))
    with pytest.raises(RunFolderError, match="its content does not match its digest"):
        read_costs(tmp_path)


def test_a_folder_without_a_table_is_refused(tmp_path):
    with pytest.raises(RunFolderError, match=r"cost\.json does not exist: give a folder written by attnaudit cost\.$"):
        read_costs(tmp_path)
