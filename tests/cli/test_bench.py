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
    reference=0.25,
)


def test_stages_and_passes_add_up_to_the_engine(run):
    assert FOUND.stages == {"eigen-solve": 6.0, "page": 1.0}
    assert FOUND.passes == {"heads": 5.0, "twin": 2.0}
    assert FOUND.around == {"page": 8.0}
    assert FOUND.record["total"] == sum(FOUND.record["microseconds_per_head"].values()) == 7e6 / 4
    assert FOUND.record["total_over_floor"] == 2.0
    assert FOUND.record["total_over_reference"] == 7.0
    assert FOUND.record["seconds_from_shell_to_page"] == 15.0


def check(result, inputs):
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["inputs"] == inputs
    assert set(found["passes"]) - {"in other threads"} == {
        *("storing", "heads and references", "best projections", "sensitivity sample", "untrained twin")
    }
    assert {"imports", "load", "summary", "verdicts", "page"} <= set(found["seconds_around"])
    assert set(found["floor"]) - {"refined projection"} <= set(found["microseconds_per_head"])
    assert found["floor_total"] > 0


def test_a_default_audit_of_pictures_is_timed(run, image_folder):
    pytest.importorskip("timm")
    check(run("test_vit", "--images", str(image_folder), "--limit", "2", "--device", "cpu", "--json"), 2)


def test_a_default_audit_of_text_is_timed(run, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setattr("attnaudit.api.benchmark._import_seconds", lambda *, wall: 1.0)
    text = tmp_path / "text.txt"
    text.write_text("a passage of a few short words, of keys and of queries " * 5)
    check(run("minilm", "--text", str(text), "--device", "cpu", "--json"), 1)


def test_the_table_names_stages_passes_and_the_floor(run, monkeypatch):
    monkeypatch.setattr("attnaudit.api.benchmark.bench", lambda *given, **more: FOUND)
    result = run("vit")
    for word in ("eigen-solve", "twin", "from shell to page", "2.00"):
        assert word in result.stdout
