"""`attnaudit report` and `attnaudit diff`, as a user meets them."""

import json
from pathlib import Path

import pytest

from tests.report.synthetic import write_run


def test_report_writes_the_page_and_prints_its_name(cli, capsys):
    write_run(Path("run"))
    assert cli("report", "run") == 0
    out, err = capsys.readouterr()
    assert out.strip() == "run/report.html"
    assert "open it in a browser" in err
    assert Path("run/report.html").stat().st_size < 3_000_000


def test_report_of_several_runs_is_one_page(cli, capsys):
    for name in ("a", "b"):
        write_run(Path(name))
    assert cli("report", "a", "b", "--out", "both.html") == 0
    assert "2 models and runs compared" in Path("both.html").read_text()


def test_every_audit_leaves_a_page(cli, capsys, image_folder):
    pytest.importorskip("timm")
    cheap = ("--claims", "kpca-values", "--references", "random_projection,planted", "--limit", "2", "--out", "run")
    assert cli("audit", "test_vit", "--random-weights", "--images", image_folder, *cheap) == 0
    assert "run/report.html" in capsys.readouterr().err
    assert "kpca-values" in Path("run/report.html").read_text()


def test_diff_finds_what_changed_and_nothing_else(cli, capsys):
    write_run(Path("a"), inputs=12)
    write_run(Path("b"), inputs=12, shift=0.5)
    assert cli("diff", "a", "b", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    changes = {change["measure"]: change for change in found["changes"]}
    assert changes["linear_cka"]["beyond_noise"]
    assert changes["linear_cka"]["mean"] == pytest.approx(0.5)
    assert changes["linear_cka"]["pairs"] == 72
    assert cli("diff", "a", "a", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert not any(change["beyond_noise"] or change["mean"] for change in found["changes"])
    assert found["settings"] == found["verdicts"] == []


def test_diff_of_noise_is_not_beyond_it(cli, capsys):
    for seed in (0, 1):
        write_run(Path(f"run{seed}"), inputs=20, seed=seed)
    assert cli("diff", "run0", "run1") == 0
    out = capsys.readouterr().out
    assert "0 of 20 measures changed beyond noise" in out
    assert "seed" in out


def test_diff_counts_what_has_no_partner_and_what_is_missing(cli, capsys):
    write_run(Path("a"), inputs=3, model="trained", lost=0.5)
    write_run(Path("b"), inputs=2, model="random")
    assert cli("diff", "a", "b", "--json") == 0
    change = json.loads(capsys.readouterr().out)["changes"][0]
    assert change["models"] == ["trained", "random"]
    assert change["unpaired"] == [6, 0]
    assert change["pairs"] + change["missing"] == 12
    assert change["missing"] > 0


BAD = [
    (("report", "nowhere"), "nowhere"),
    (("report", "run", "--out", "no/such/folder.html"), "cannot be written"),
    (("diff", "run", "nowhere"), "nowhere"),
    (("diff", "run", "other"), "cannot be compared"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(b[0]) for b in BAD])
def test_bad_folders_get_one_sentence(refused, arguments, message):
    write_run(Path("run"))
    write_run(Path("other"), names=["x", "y"])
    refused(arguments, 1, message)
