"""`attnaudit atlas` in a terminal."""

import json


def test_a_model_that_fails_is_named_and_decides_the_exit_code(cli, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ATTNAUDIT_DATA", raising=False)
    out = str(tmp_path / "atlas")
    assert cli("atlas", "--models", "mgm", "--out", out, "--json") == 1
    found = capsys.readouterr()
    assert json.loads(found.out)["failures"].keys() == {"mgm"}
    assert "licence MIT" in found.err
    assert cli("atlas", "--only", "microbiomes", "--out", out) == 1
    assert "mgm failed: mgm is not here yet" in " ".join(capsys.readouterr().out.split())


def test_an_unknown_field_is_a_wrong_option(cli, capsys, tmp_path):
    assert cli("atlas", "--only", "vision", "--only", "painting", "--out", str(tmp_path / "atlas")) == 2
    assert "Unknown field 'painting'" in capsys.readouterr().err
