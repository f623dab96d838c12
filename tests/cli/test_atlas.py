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


def test_all_does_not_hide_what_is_unknown_and_both_options_may_be_repeated(cli, capsys, tmp_path):
    out = ("--out", str(tmp_path / "atlas"))
    assert cli("atlas", "--only", "all,nonsense", *out) == 2
    assert cli("atlas", "--models", "nonsense", "--models", "mgm", *out) == 2
    assert "'nonsense'" in capsys.readouterr().err
    assert cli("atlas", "--models", "none", *out) == 2
    assert "--models none leaves nothing to audit." in capsys.readouterr().err
    assert cli("atlas", "--limit", "-1", "--models", "mgm", *out) == 2
    assert not (tmp_path / "atlas").exists()


def test_an_atlas_is_no_run_and_a_run_no_atlas(cli, capsys, tmp_path):
    atlas, run = tmp_path / "atlas", tmp_path / "run"
    atlas.mkdir()
    run.mkdir()
    (atlas / "atlas.json").write_text("{}")
    (run / "run.json").write_text("{}")
    assert cli("report", str(atlas)) == 1
    assert "is an atlas: give one of the folders below it." in " ".join(capsys.readouterr().err.split())
    assert cli("atlas", "--models", "mgm", "--out", str(run)) == 1
    assert "is neither empty nor an atlas" in " ".join(capsys.readouterr().err.split())
