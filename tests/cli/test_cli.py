"""The command line as a user meets it: output, errors, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from attnaudit.records.head_views import read_views
from tests.cli.conftest import read_csv

pytest.importorskip("timm")
CHEAP = ("--limit", "2", "--claims", "kpca-values,kpca-eigenvalues", "--references", "random_projection,planted")


@pytest.mark.parametrize("arguments", [(), ("audit",), ("robust",), ("gaussian", "align")], ids=" ".join)
def test_help_loads_no_heavy_package(arguments):
    code = f"import sys; sys.argv = ['attnaudit', *{arguments}, '--help']\nfrom attnaudit.cli import main\n" + (
        "try:\n    main()\nexcept SystemExit:\n"
        "    heavy = {'torch', 'pyarrow', 'numpy', 'scipy', 'timm', 'transformers', 'attnaudit.records.json_file'}\n"
        "    heavy |= set() if len(sys.argv) > 2 else {'pydantic'}  # of which typer itself takes a part for options\n"
        "    assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "audit" in result.stdout


def test_audit_prints_a_table_and_says_where_the_run_is(cli, capsys, image_folder):
    arguments = ("audit", "timm:test_vit", "--random-weights", "--images", image_folder, *CHEAP)
    assert cli(*arguments, "--out", "run") == 0
    out, err = capsys.readouterr()
    assert "kpca-eigenvalues" in out
    assert "refuted" in out
    assert err.count("RANDOM weights") == 1
    assert "Run folder: run" in err
    assert json.loads(Path("run/summary.json").read_text())["models"]


def test_audit_in_json_prints_nothing_else_on_stdout(cli, capsys, image_folder):
    assert cli("audit", "test_vit", "--random-weights", "--images", image_folder, *CHEAP, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["models"]["test_vit (random weights)"]["observed"]["linear_cka"]["n"] > 0


@pytest.mark.parametrize(("given", "kept"), [(("--keep-maps",), 2), (("--keep-maps", "1"), 1), (("--keep-maps=1",), 1)])
def test_maps_are_kept_of_two_inputs_or_as_many_as_asked_for(cli, capsys, image_folder, given, kept):
    arguments = ("audit", *given, "test_vit", "--random-weights", "--images", image_folder, *CHEAP)
    assert cli(*arguments, "--out", "run") == 0
    assert len(read_views(Path("run"))) == kept


def test_the_help_says_what_keeping_maps_means(cli, capsys):
    assert cli("audit", "--help") == 0
    words = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--keep-maps [N]" in words
    assert "on the first N inputs (2 without a number)" in words
    assert "It then has small pictures, or the text." in words


def test_audit_without_images_takes_those_of_an_installed_package(cli, capsys):
    assert cli("audit", "test_vit", "--random-weights", *CHEAP) == 0
    assert "photographs from scikit-image" in capsys.readouterr().err


def test_a_second_audit_resumes_in_the_default_folder(cli, capsys, image_folder):
    for _ in range(2):
        assert cli("audit", "test_vit", "--random-weights", "--images", image_folder, *CHEAP) == 0
    assert len(os.listdir("attnaudit-runs")) == 1


@pytest.mark.parametrize("item", ["table1", "table2", "table3"])
def test_tables_show_published_and_ours(cli, capsys, image_folder, item):
    arguments = ("paper", item, "deit_tiny_patch16_224", "--random-weights", "--images", image_folder)
    assert cli(*arguments, "--limit", "1", "--out", "run") == 0
    out = capsys.readouterr().out
    assert {"table1": "0.31", "table2": "325 ± 5", "table3": "1043 ± 99"}[item] in out
    assert ("0 of 36 allclose tests pass" in out) == (item == "table1")
    rows = read_csv(f"run/{item}.csv")
    assert len(rows) == {"table1": 4, "table2": 4, "table3": 8}[item]


@pytest.mark.parametrize(("item", "rows"), [("figure2", 24), ("figure3", 256)])
def test_figures_are_drawn_with_their_data(cli, capsys, image_folder, item, rows):
    arguments = ("paper", item, "deit_tiny_patch16_224", "--random-weights", "--images", image_folder)
    assert cli(*arguments, "--out", "figures") == 0
    assert Path(f"figures/{item}.svg").read_text().lstrip().startswith("<?xml")
    assert Path(f"figures/{item}.pdf").read_bytes().startswith(b"%PDF")
    assert len(read_csv(f"figures/{item}.csv")) == rows


def test_lists(cli, capsys):
    assert cli("ls", "measures", "--json") == 0
    assert "kernel_cka" in {row["measure"] for row in json.loads(capsys.readouterr().out)}
    assert cli("ls", "models") == 0
    assert "vit_large_patch16_224" in capsys.readouterr().out


@pytest.fixture
def bad_weights(tmp_path):
    save_file({"head.weight": torch.zeros(3)}, tmp_path / "other.safetensors")
    torch.save(
        {"x": object.__new__(type("Evil", (), {"__reduce__": lambda self: (print, ("ran",))}))}, tmp_path / "evil.pth"
    )
    return tmp_path


BAD = [
    (("audit", "test_vitt", "--random-weights"), 1, "did you mean test_vit"),
    (("audit", "test_vit"), 1, "no local weights"),
    (("audit", "test_vit", "--weights", "nowhere.safetensors"), 1, "nowhere.safetensors does not exist"),
    (("audit", "test_vit", "--weights", "other.safetensors", "--images", "IMAGES"), 1, "does not fit test_vit"),
    (("audit", "test_vit", "--weights", "evil.pth", "--images", "IMAGES"), 1, "refused"),
    (("audit", "test_vit", "test_vit2", "--weights", "other.safetensors"), 2, "exactly one model, got 2"),
    (("audit", "test_vit", "--random-weights", "--images", "."), 1, "no images"),
    (("audit", "test_vit", "--random-weights", "--images", "nowhere"), 1, "nowhere does not exist"),
    (("audit", "test_vit", "--random-weights", "--images", "IMAGES", "--limit", "0"), 2, "≥ 1, got 0"),
    (("audit", "test_vit", "--random-weights", "--images", "IMAGES", "--limit", "0", "--first"), 2, "≥ 1, got 0"),
    (("audit", "test_vit", "--random-weights", "--images", "IMAGES", "--out", "/proc/nope"), 1, "cannot be written"),
    (("audit", "test_vit", "--random-weights", "--images", "IMAGES", "--keep-maps", "0"), 2, "--keep-maps must be ≥ 1"),
    (("audit", "test_vit", "--random-weights", "--protocol", "vibes"), 2, "vibes"),
    (("audit",), 2, "Missing argument"),
    (("audit", "resnet18", "--random-weights", "--images", "IMAGES"), 1, "attention layer of resnet18"),
    (("paper", "table9"), 2, "table9"),
    (("paper", "table1"), 1, "None of the 10 models"),
    (("paper", "table1", "--weights", "other.safetensors"), 2, "--weights needs a model name"),
    (("paper", "table1", "deit_tiny_patch16_224", "--random-weights"), 1, "--images DIR"),
    (("paper", "figure2", "test_vit", "--random-weights", "--images", "IMAGES", "--limit", "0"), 2, "≥ 1, got 0"),
    (("paper", "figure3", "test_vit", "test_vit2", "--random-weights", "--images", "IMAGES"), 2, "one model, got 2"),
    (("audit", "test_vit", "--random-weights", "--images", "IMAGES", "--lines"), 2, "--lines is for text"),
    (("audit", "test_vit", "--random-weights", "--memory", "lots"), 2, "'lots'"),
    (("audit", "test_vit", "--random-weights", "--memory", "1MB"), 2, "is too little"),
    (("audit", "test_vit", "--random-weights", "--workers", "2", "--cluster", "tcp://127.0.0.1:1"), 2, "exclude"),
    (("audit", "test_vit", "--random-weights", "--images", "IMAGES", "--cluster", "nowhere"), 2, "'nowhere'"),
    (("paper", "figure2", "test_vit", "--random-weights", "--cluster", "tcp://127.0.0.1:1"), 2, "is for tables"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), BAD, ids=[" ".join(b[0]) for b in BAD])
def test_bad_input_gets_one_sentence_and_leaves_nothing(refused, bad_weights, image_folder, arguments, code, message):
    os.makedirs("empty")
    places = {"IMAGES": image_folder, ".": "empty"}
    refused([places.get(argument, argument) for argument in arguments], code, message)


def test_a_truncated_image_is_skipped_counted_and_named(cli, capsys, image_folder):
    path = image_folder / "class0" / "image2.png"
    path.write_bytes(path.read_bytes()[:200])
    assert cli("audit", "test_vit", "--random-weights", "--images", image_folder, "--claims", "none") == 0
    assert "skipped input class0/image2.png" in capsys.readouterr().err
