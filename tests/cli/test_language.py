"""Language models on the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import read_csv

pytest.importorskip("transformers")


@pytest.fixture
def text_file(tmp_path):
    sentence = "The quick brown fox number {0} jumps over the lazy dog {0} times, and then it rests for {0} days . "
    path = tmp_path / "text.txt"
    path.write_text("\n".join(sentence.format(place) * 2 for place in range(60)))
    return path


def test_minilm_is_audited_on_text(cli, capsys, text_file):
    arguments = ("audit", "minilm", "--text", text_file, "--limit", "2", "--claims", "kpca-values", "--out", "run")
    assert cli(*arguments, "--references", "random_projection,planted") == 0
    out, err = capsys.readouterr()
    assert "2 passages of text.txt" in err
    assert "supported if the whole confidence interval is at or above 0.8" in " ".join(err.split())
    assert "kpca-values" in out


def test_the_first_passages_are_taken_in_order_when_asked(text_file):
    from attnaudit.protocol import Protocol
    from attnaudit.sources import parse_model
    from attnaudit.sources.selection import InputSelection, select_inputs

    specs = [parse_model("minilm")]
    first = select_inputs(specs, InputSelection(text_file, 3, first=True), Protocol.EXACT)
    assert [shard.identity[0][0] for shard in first.shards] == ["passage-0", "passage-1", "passage-2"]


def test_json_has_no_infinity(capsys):
    from attnaudit.report.console import print_json

    print_json({"a": [float("inf"), float("nan"), 1.5], "b": {"c": (2, "x")}})
    assert json.loads(capsys.readouterr().out) == {"a": [None, None, 1.5], "b": {"c": [2, "x"]}}


def test_python_audits_text_by_name(text_file):
    import attnaudit

    cheap = {"limit": 2, "references": ("random_projection", "planted"), "claims": ["kpca-values"]}
    run = attnaudit.audit("minilm", text_file, **cheap)
    assert [verdict.claim for verdict in run.verdicts] == ["kpca-values"]


def test_one_short_line_is_not_identifiable_and_no_error(cli, capsys, tmp_path):
    (tmp_path / "short.txt").write_text("One short line of text.")
    claims = ("kpca-values", "kpca-eigenvectors", "kpca-projection", "ksvd-values")
    cheap = ("--claims", ",".join(claims), "--references", "random_projection,planted")
    assert cli("audit", "minilm", "--text", tmp_path / "short.txt", "--json", *cheap) == 0
    for verdict in json.loads(capsys.readouterr().out)["verdicts"]:
        assert (verdict["word"], verdict["finding"]) == ("undecided", "not identifiable")
        assert "N ≥ 2d" in verdict["reason"]


def test_table4_shows_minilm_beside_its_published_row(cli, capsys, text_file):
    assert cli("paper", "table4", "minilm", "--text", text_file, "--limit", "3", "--out", "run") == 0
    out = capsys.readouterr().out
    for published in ("0.40", "0.57", "0.13", "0.38"):
        assert published in out
    assert len(read_csv("run/table4.csv")) == 4


def test_figure5_is_drawn(cli, text_file):
    assert cli("paper", "figure5", "minilm", "--text", text_file, "--out", "figures") == 0
    assert len(read_csv("figures/figure5.csv")) == 12
    assert Path("figures/figure5.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [(b"", 1, "is empty"), (b"\x7fELF\xff\x00", 1, "not UTF-8"), (None, 1, "cannot be read")],
)
def test_unusable_text_gets_one_sentence(refused, tmp_path, content, code, message):
    path = tmp_path / "input.txt"
    if content is not None:
        path.write_bytes(content)
    refused(("audit", "minilm", "--text", path), code, message)


def test_the_wrong_kind_of_input_is_a_usage_error(cli, capsys, image_folder, text_file):
    assert cli("audit", "minilm", "--images", image_folder) == 2
    assert "reads text" in capsys.readouterr().err
    assert cli("audit", "test_vit", "--random-weights", "--text", text_file) == 2
    assert "reads images" in capsys.readouterr().err


def test_doctor_lists_packages_and_looks_at_models(cli, capsys):
    assert cli("doctor", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert "transformers" in report["Packages"]
    assert report["Machine"]["ATTNAUDIT_DATA"] == "unset"
    assert cli("doctor", "minilm", "--json") == 0
    layers = json.loads(capsys.readouterr().out)["minilm: captured"]
    assert len(layers) == 6
    assert cli("doctor", "timm:xcit_nano_12_p16_224", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert "channels" in report["xcit_nano_12_p16_224 (random weights): refused"]["blocks.0.attn"]


def test_doctor_warns_of_heads_with_too_few_tokens_to_decide(cli, capsys):
    assert cli("doctor", "swin_tiny_patch4_window7_224", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    warning = report["swin_tiny_patch4_window7_224 (random weights): warning"]["12 of 12 layers"]
    assert "N = 49 tokens are fewer than 2d = 64" in warning
    captured = report["swin_tiny_patch4_window7_224 (random weights): captured"]
    assert captured["layers.0.blocks.0.attn"].startswith("3 heads x 64 windows x 49 tokens x 32 dims")


def test_doctor_exits_with_1_if_nothing_can_be_captured(cli, capsys):
    assert cli("doctor", "resnet18") == 1
    assert "makes no attention call" in capsys.readouterr().out


def test_doctor_says_how_to_get_a_model_of_the_hub_that_is_not_here(refused):
    refused(["doctor", "hf:nobody/nothing"], 1, "has no local copy: give a folder in Hugging Face layout, or allow")


def test_the_install_line_of_every_package_brings_it():
    from attnaudit.sources.environment import PACKAGES
    from tests.test_release import PROJECT

    extras = PROJECT["optional-dependencies"]
    found = {package: extra for package, extra in PACKAGES.items() if extra is not None}
    missing = [name for name, extra in found.items() if not any(each.startswith(name) for each in extras[extra])]
    assert missing == []


def test_missing_extras_are_named_with_their_install_line(cli, capsys, monkeypatch):
    import attnaudit.sources.environment as module

    monkeypatch.setattr(module, "PACKAGES", {"no-such-package": "robust"})
    assert cli("doctor") == 0
    assert "attnaudit[robust]" in capsys.readouterr().out
