"""A table of costs is read as it was written, or refused in one sentence."""

import pytest

from attnaudit.errors import RunFolderError, SettingError
from attnaudit.records import json_file
from attnaudit.records.cost import COST_FILE, PassCost, PassTimes, read_costs
from tests.cost.tables import table
from tests.sealed import content_of, seal


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


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_time_is_above_zero(seconds):
    for own, symmetric in ((seconds, 1.0), (1.0, seconds)):
        with pytest.raises(SettingError, match="seconds must be > 0, got"):
            PassTimes((1.0, own), (1.0, symmetric))


@pytest.mark.parametrize("symmetric", [(), (1.0,), (1.0, 1.0, 1.0)])
def test_every_time_has_one_of_symmetric_attention(symmetric):
    with pytest.raises(SettingError, match=f"needs one of symmetric attention, got 2 and {len(symmetric)}"):
        PassTimes((1.0, 1.0), symmetric)


def test_there_is_at_least_one_time():
    with pytest.raises(SettingError, match="got 0 and 0"):
        PassTimes((), ())


@pytest.mark.parametrize("name", ["operations", "memory"])
def test_no_pass_is_free(name):
    counts = {"operations": 1, "memory": 1, name: 0}
    with pytest.raises(SettingError, match=f"{name} must be ≥ 1, got 0"):
        PassCost(**counts, times=PassTimes((1.0,), (1.0,)), graph=None)


def test_a_table_with_an_impossible_time_is_refused_though_its_digest_matches(tmp_path):
    file = tmp_path / COST_FILE
    json_file.write(file, table())
    content = content_of(file)
    content["networks"][0]["training"]["times"]["own"][0] = 0.0
    seal(file, content)
    with pytest.raises(RunFolderError, match=r"networks\[0\]\.training\.times: seconds must be > 0, got 0"):
        read_costs(tmp_path)
