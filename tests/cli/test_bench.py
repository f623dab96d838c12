"""`attnaudit bench` accounts for all of the time."""

import json

import pytest
from typer.testing import CliRunner

from attnaudit.cli import app
from attnaudit.errors import UsageError


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(app, ["bench", *arguments], catch_exceptions=True)


def test_stages_and_the_rest_add_up_to_the_whole(run):
    result = run("test_vit", "--limit", "2", "--device", "cpu", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    stages = found["microseconds_per_head"]
    assert set(stages) == {"forward", "capture", "gram", "eigen-solve", "assignment", "cka", "write"}
    assert sum(stages.values()) + found["other"] == pytest.approx(found["total"])
    floor = sum(stages[name] for name in ("forward", "gram", "eigen-solve", "assignment"))
    assert found["floor"] == pytest.approx(floor)
    assert found["total_over_floor"] == pytest.approx(found["total"] / floor)


@pytest.mark.parametrize("protocol", ["paper", "exact"])
def test_the_table_names_every_stage(run, protocol):
    result = run("test_vit", "--limit", "1", "--device", "cpu", "--protocol", protocol)
    assert result.exit_code == 0, result.output
    for stage in ("forward", "eigen-solve", "assignment", "everything else", "floor"):
        assert stage in result.stdout


def test_models_that_read_are_refused(run):
    result = run("minilm", "--device", "cpu")
    assert isinstance(result.exception, UsageError)
    assert "times vision models" in str(result.exception)
