"""`attnaudit robust` and `attnaudit corrupt` from the command line."""

import csv
import errno
import io
import json
import os
import sys
from functools import partial

import pyarrow.parquet as pq
import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from typer.testing import CliRunner

from attnaudit.cli import app
from attnaudit.errors import AttnAuditError, RunFolderError, UsageError
from tests.robustness.subjects import write_folders, write_model, write_parquet
from tests.sealed import content_of

pytest.importorskip("timm")
DATA = os.environ.get("ATTNAUDIT_DATA", "")


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch):
    monkeypatch.delenv("ATTNAUDIT_DATA", raising=False)


@pytest.fixture
def model(tmp_path):
    write_model(tmp_path / "vit")
    write_parquet(tmp_path / "test.parquet", count=8)
    return "vit"


def run(*arguments):
    return CliRunner().invoke(app, list(arguments), catch_exceptions=True)


def robust(*arguments):
    return run("robust", "vit", "--device", "cpu", *arguments)


def test_table_page_curves_and_rows_come_out(model, tmp_path):
    result = robust("--parquet", "test.parquet", "--attacks", "fgsm,pgd:2", "--eps", "1/255,0.1", "--out", "out")
    assert result.exit_code == 0, result.output
    for words in ("clean", "fgsm, ε = 1/255", "pgd, ε = 0.1", "Can the attacks be trusted?"):
        assert words in result.stdout
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "accuracy.csv").read_text())))
    assert [row["name"] for row in rows] == ["clean", "fgsm", "fgsm", "pgd", "pgd"]
    for name in ("curves.svg", "curves.pdf", "report.html", "run.json", "summary.json"):
        assert (tmp_path / "out" / name).stat().st_size > 0


def test_json_is_the_summary(model, tmp_path):
    result = robust("--parquet", "test.parquet", "--attacks", "none", "--json", "--out", "out")
    assert json.loads(result.stdout) == content_of(tmp_path / "out" / "summary.json")


def test_compiled_networks_have_the_same_accuracies(model, tmp_path, monkeypatch):
    backend = CompileCounterWithBackend("eager")
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    found, compiled = [], []
    for out, options in (("plain", ()), ("compiled", ("--compile",))):
        asked = ("--parquet", "test.parquet", "--attacks", "fgsm,pgd:2", "--eps", "1/255", "--out", out)
        result = robust(*asked, *options)
        assert result.exit_code == 0, result.output
        compiled.append(backend.frame_count > 0)
        rows = csv.DictReader(io.StringIO((tmp_path / out / "accuracy.csv").read_text()))
        found.append([(row["name"], row["accuracy"]) for row in rows])
    assert compiled == [False, True]
    assert found[0] == found[1]


def test_a_network_that_cannot_be_compiled_is_one_sentence(model, monkeypatch):
    def no_compiler(graph, inputs):
        raise OSError("no C++ compiler")

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=no_compiler))
    result = robust("--parquet", "test.parquet", "--attacks", "fgsm", "--compile")
    assert isinstance(result.exception, AttnAuditError), result.output
    assert str(result.exception).startswith("The network cannot be compiled here (no C++ compiler): repeat")


def test_without_checks_none_are_made_or_shown(model, tmp_path):
    result = robust("--parquet", "test.parquet", "--attacks", "fgsm,pgd:2", "--no-checks", "--out", "out")
    assert result.exit_code == 0, result.output
    assert "believed" not in result.stdout + (tmp_path / "out" / "report.html").read_text()
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["checks"] == []


@pytest.mark.parametrize("verb", ["robust", "corrupt"])
def test_a_negative_seed_is_a_usage_error(model, verb):
    result = run(verb, "vit", "--parquet", "test.parquet", "--seed", "-1")
    assert result.exit_code == 2
    assert "Invalid value for '--seed'" in result.stderr


def test_the_default_folder_is_named_after_model_and_protocol(model, tmp_path):
    assert robust("--parquet", "test.parquet", "--attacks", "none", "--protocol", "paper").exit_code == 0
    (folder,) = (tmp_path / "attnaudit-runs").iterdir()
    assert folder.name.startswith("robust-vit-paper-")


def test_corrupted_sets_serve_machines_without_the_package(model, tmp_path, monkeypatch):
    pytest.importorskip("imagecorruptions")
    options = ("--corruptions", "fog,contrast", "--severities", "1,5")
    assert run("corrupt", "vit", "--parquet", "test.parquet", *options, "--out", "sets").exit_code == 0
    now = robust("--parquet", "test.parquet", "--attacks", "none", *options, "--json", "--out", "now")
    monkeypatch.setitem(sys.modules, "imagecorruptions", None)
    ready = robust("--corrupted", "sets", "--attacks", "none", *options, "--json", "--out", "ready")
    assert ready.exit_code == 0, ready.output
    found = [[entry["right"] for entry in json.loads(r.stdout)["accuracies"]] for r in (now, ready)]
    assert found[0] == found[1]
    assert len(found[0]) == 5


@pytest.mark.parametrize("ours", [True, False])
def test_a_corrupted_set_that_lacks_the_last_class_is_of_all_its_classes(tmp_path, ours):
    pytest.importorskip("imagecorruptions")
    write_model(tmp_path / "vit", classes=12)
    write_parquet(tmp_path / "test.parquet", count=24, classes=12)
    options = ("--corruptions", "fog", "--severities", "1")
    made = run("corrupt", "vit", "--parquet", "test.parquet", *options, "--limit", "4", "--out", "sets")
    assert made.exit_code == 0, made.output
    labels = pq.read_table(tmp_path / "sets" / "clean.parquet")["label"].to_pylist()
    assert max(labels) < 11
    if not ours:
        (tmp_path / "sets" / "set.json").unlink()
    result = robust("--corrupted", "sets", "--attacks", "none", *options, "--json")
    if ours:
        assert [entry["images"] for entry in json.loads(result.stdout)["accuracies"]] == [4, 4]
    else:
        assert f"vit has 12 classes, but sets/clean.parquet has {max(labels) + 1}" in str(result.exception)


def test_corrupt_refuses_a_folder_of_other_images(model):
    pytest.importorskip("imagecorruptions")
    options = ("--corruptions", "fog", "--severities", "1", "--parquet", "test.parquet", "--out", "sets")
    assert run("corrupt", "vit", *options, "--limit", "4").exit_code == 0
    result = run("corrupt", "vit", *options, "--limit", "6")
    assert isinstance(result.exception, RunFolderError)
    assert str(result.exception) == ("sets holds a run with other images (4 there, 6 here): give --out another folder.")


def test_corrupt_names_another_seed_before_the_images_that_it_draws(model):
    pytest.importorskip("imagecorruptions")
    options = (
        "--corruptions",
        "fog",
        "--severities",
        "1",
        "--parquet",
        "test.parquet",
        "--limit",
        "4",
        "--out",
        "sets",
    )
    assert run("corrupt", "vit", *options).exit_code == 0
    assert str(run("corrupt", "vit", *options, "--seed", "1").exception) == (
        "sets holds a run with other seed and images (0 there, 1 here): give --out another folder."
    )


def test_corrupt_with_no_corruption_is_a_usage_error_and_writes_nothing(model, tmp_path):
    result = run("corrupt", "vit", "--parquet", "test.parquet", "--corruptions", "none", "--out", "sets")
    assert isinstance(result.exception, UsageError)
    assert "--corruptions none" in str(result.exception)
    assert not (tmp_path / "sets").exists()


def test_a_baseline_gives_a_corruption_error(model):
    pytest.importorskip("imagecorruptions")
    result = robust(
        *("--parquet", "test.parquet", "--attacks", "none", "--corruptions", "fog", "--severities", "1"),
        *("--baseline", "vit", "--json"),
    )
    assert json.loads(result.stdout)["scores"][0]["name"] == "mCE against vit"


def test_twin_outliers_and_mask_are_taken(model, tmp_path):
    write_folders(tmp_path / "strangers", ["x", "y"])
    write_folders(tmp_path / "classes", ["0", "1"])
    result = robust(
        *("--images", "classes", "--twin", "vit", "--outliers", "strangers", "--mask", "--attacks", "pgd:1", "--json")
    )
    found = json.loads(result.stdout)
    assert "transfer" in {entry["condition"]["name"] for entry in found["accuracies"]}
    assert [score["name"] for score in found["scores"]] == ["AUPR of outliers"]


def test_an_evaluation_is_judged_by_the_cards_of_its_networks(tmp_path):
    write_parquet(tmp_path / "test.parquet", count=8)
    for attention in ("symmetric", "rpc"):
        for seed in (0, 1):
            facts = {"recipe": f"{attention}-recipe", "seed": seed, "epochs": 1}
            write_model(tmp_path / f"{attention}-{seed}", facts=facts, attention=attention)
    models = sorted(path.name for path in tmp_path.glob("*-?"))
    shared = ("--parquet", "test.parquet", "--device", "cpu", "--out", "out")
    assert run("robust", *models, *shared, "--attacks", "fgsm", "--eps", "0.0").exit_code == 0
    (verdict,) = json.loads(run("judge", "out", "--claims", "rpc-robust", "--json").stdout)
    assert verdict["model"] == "rpc-recipe"
    assert (verdict["word"], verdict["finding"]) == ("undecided", "not measured")
    assert "no corruption was run on both" in verdict["reason"]
    told = run("judge", "out", "--out", "images")
    assert "rpc-because-of-pcp is not judged: it needs" in told.stderr
    assert "jproj-convergence" not in told.output
    with (tmp_path / "images" / "gains.csv").open() as file:
        gains = {(row["recipe"], row["condition"]): row for row in csv.DictReader(file)}
    assert gains["rpc-recipe", "clean"]["seeds"] == "2"
    assert float(gains["rpc-recipe", "clean"]["gain"]) == float(gains["rpc-recipe", "clean"]["accuracy"]) - float(
        gains["symmetric-recipe", "clean"]["accuracy"]
    )
    assert "symmetric attention" in (tmp_path / "images" / "gains.svg").read_text()


LISTS = ("--eps", "--severities", "--attacks", "--corruptions")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--eps", "-1/255"), "between 0 and 1, as pixel values are, such as 4/255, got -1/255"),
        (("--eps", "2"), "got 2"),
        (("--eps", "none"), "got none"),
        *(((option, ""), f"{option} must not be empty") for option in LISTS),
        (("--eps", " , "), "--eps must not be empty"),
        (("--severities", "none"), "--severities must be a list of integers, such as 1,4,16, got none"),
        (("--attacks", "bim"), "Unknown attack 'bim' (--protocol exact)"),
        (("--corruptions", "rain"), "Unknown corruption 'rain'"),
        (("--corruptions", "fog", "--severities", "9"), "Unknown severity 9. Known: 1, 2, 3, 4, 5."),
        (("--baseline", "other"), "(vit), got other"),
        (("--images", "x", "--parquet", "y"), "--images and --parquet exclude each other"),
        (("--parquet", "three.parquet"), "vit has 2 classes, but three.parquet has 3"),
        (
            ("--corrupted", "nowhere", "--corruptions", "fog"),
            "got nowhere",
        ),
        (("--corrupted", "test.parquet"), "got test.parquet"),
        (("--corrupted", "vit"), "--corrupted vit needs corruptions"),
        (("--corrupted", "vit", "--corruptions", "fog"), "vit has neither fog/1/ nor fog/1.parquet"),
        (("--baseline", "vit"), "--baseline vit needs corruptions"),
        (("--twin", "nothing"), "nothing"),
        (("--twin", "large"), "vit sees 32×32 pixels and its twin large 48×48, so that it cannot be shown"),
        (("--twin", "three"), "three has 3 classes, but test.parquet has 2"),
    ],
)
def test_bad_input_is_one_sentence(model, tmp_path, arguments, sentence):
    write_parquet(tmp_path / "three.parquet", count=9, classes=3)
    write_model(tmp_path / "large", size=48)
    write_model(tmp_path / "three", classes=3)
    named = {"--parquet", "--images"} & set(arguments)
    result = robust(*arguments, *(() if named else ("--parquet", "test.parquet")))
    assert isinstance(result.exception, AttnAuditError), result.output
    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "attnaudit-runs").exists()


@pytest.mark.parametrize(
    "arguments",
    [("robust", "vit", "--attacks", "none"), ("corrupt", "vit", "--corruptions", "fog", "--severities", "1")],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("written", range(3))
def test_a_full_disk_is_one_sentence_whichever_file_it_meets(model, monkeypatch, arguments, written):
    pytest.importorskip("imagecorruptions")
    room = iter([None] * written)

    def fsync(handle):
        try:
            next(room)
        except StopIteration:
            raise OSError(errno.ENOSPC, "No space left on device") from None

    monkeypatch.setattr(os, "fsync", fsync)
    result = run(*arguments, "--parquet", "test.parquet", "--out", "out")
    assert isinstance(result.exception, RunFolderError), result.output
    assert "cannot be written (No space left on device): make room" in str(result.exception)


def test_without_data_the_sentence_says_where_it_was_looked_for(model):
    result = robust()
    assert "for 2 classes" in str(result.exception)


def test_models_that_read_are_refused():
    pytest.importorskip("transformers")
    result = run("robust", "minilm", "--device", "cpu")
    assert "minilm has no preprocessing for images: give a vision model" in str(result.exception)


@pytest.mark.realdata
@pytest.mark.parametrize(("classes", "images"), [(10, 16), (1000, 12)])
def test_images_for_ten_and_a_thousand_classes_are_in_the_data_folder(tmp_path, monkeypatch, classes, images):
    monkeypatch.setenv("ATTNAUDIT_DATA", DATA)
    write_model(tmp_path / "vit", classes)
    result = robust("--limit", str(images), "--attacks", "fgsm", "--json")
    assert [entry["images"] for entry in json.loads(result.stdout)["accuracies"]] == [images] * 3


def test_attacks_and_corruptions_are_listed():
    assert "autoattack" in run("ls", "attacks").stdout
    assert "jpeg_compression" in run("ls", "corruptions").stdout
