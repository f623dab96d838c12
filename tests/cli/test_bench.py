"""`attnaudit bench` accounts for all of the time of a default audit, of pictures and of text."""

import json

import pytest
from typer.testing import CliRunner

from attnaudit.audit.benchmark import Benchmark
from attnaudit.cli import app


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(app, ["bench", *arguments], catch_exceptions=False)


FOUND = Benchmark(
    "vit",
    "one CPU thread",
    inputs=2,
    heads=4,
    seconds={
        ("heads", "eigen-solve"): 4.0,
        ("twin", "eigen-solve"): 2.0,
        ("heads", "page"): 1.0,
        ("around", "page"): 8.0,
    },
    floor={"eigen-solve": 3.5},
)


def test_stages_and_passes_add_up_to_the_engine(run):
    assert FOUND.stages == {"eigen-solve": 6.0, "page": 1.0}
    assert FOUND.passes == {"heads": 5.0, "twin": 2.0}
    assert FOUND.around == {"page": 8.0}
    assert FOUND.record["total"] == sum(FOUND.record["microseconds_per_head"].values()) == 7e6 / 4
    assert FOUND.record["total_over_floor"] == 2.0
    assert FOUND.record["seconds_from_shell_to_page"] == 15.0


@pytest.mark.parametrize("model", ["test_vit", "minilm"])
def test_a_default_audit_is_timed(run, model):
    pytest.importorskip("timm" if model == "test_vit" else "transformers")
    result = run(model, "--limit", "2", "--device", "cpu", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["inputs"] == 2
    assert set(found["passes"]) == {
        *("storing", "heads and references", "best projections", "sensitivity sample", "untrained twin")
    }
    assert {"imports", "load", "summary", "verdicts", "page"} <= set(found["seconds_around"])
    assert set(found["floor"]) - {"refined projection"} <= set(found["microseconds_per_head"])
    assert found["floor_total"] > 0


def test_the_table_names_stages_passes_and_the_floor(run, monkeypatch):
    monkeypatch.setattr("attnaudit.api.machine.benchmark", lambda *given: FOUND)
    result = run("vit")
    for word in ("eigen-solve", "twin", "from shell to page", "2.00"):
        assert word in result.stdout
