"""`attnaudit train` and `attnaudit judge`, as a person types them."""

import json
import shutil
from functools import partial

import pytest
import torch
from typer.testing import CliRunner

from attnaudit.api import trainings
from attnaudit.cli import app
from attnaudit.errors import AttnAuditError, InputError, RunFolderError, UsageError
from tests.claims.evaluations import pairs, write_evaluation
from tests.training_runs import write_course, write_training


def run(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_recipe_is_trained_audited_and_judged(tmp_path, data_set, recipe_file, image_folder):
    out = tmp_path / "run"
    result = run("train", recipe_file, "--data", data_set, "--epochs", 1, "--out", out, "--device", "cpu", "--json")
    facts = json.loads(result.stdout)
    assert (facts["recipe"], facts["epoch"], facts["step"]) == ("tiny", 1, 5)
    assert "epoch 1/1: loss" in result.stderr
    assert "step 5  train: J" in result.stderr
    assert (out / "model.safetensors").exists()
    again = run("train", recipe_file, "--data", data_set, "--epochs", 1, "--out", out, "--device", "cpu")
    assert "TrainingResult(tiny, seed 0: test accuracy" in again.stdout
    cheap = ("--limit", 2, "--references", "random_projection,planted", "--claims", "kpca-values")
    audited = run("audit", out, "--images", image_folder, *cheap, "--out", tmp_path / "audit", "--json")
    assert list(json.loads(audited.stdout)["models"]) == [str(out)]
    judged = run("judge", out, "--json")
    assert [verdict["claim"] for verdict in json.loads(judged.stdout)] == ["jproj-convergence"]
    assert "scaled-attention-converges-faster is not judged: it needs runs with" in judged.stderr


def test_the_monitors_run_draws_figure_1(tmp_path, data_set, recipe_file):
    out = tmp_path / "run"
    run("train", recipe_file, "--data", data_set, "--epochs", 1, "--out", out, "--device", "cpu")
    run("paper", "figure1", out, "--out", tmp_path / "figures")
    assert (tmp_path / "figures" / "figure1.svg").exists()
    assert (tmp_path / "figures" / "figure1.pdf").exists()


def test_settings_are_changed_and_refused_by_name(tmp_path, data_set, recipe_file):
    with pytest.raises(UsageError, match="did you mean depth"):
        run("train", recipe_file, "--data", data_set, "--set", "model.dept=3")
    assert not (tmp_path / "attnaudit-runs").exists()


def test_without_data_the_command_says_what_to_give(monkeypatch):
    monkeypatch.delenv("ATTNAUDIT_DATA", raising=False)
    with pytest.raises(InputError, match=r"--data DIR, .*cifar10/ .*ATTNAUDIT_DATA"):
        run("train", "vit-small-cifar")


@pytest.mark.parametrize(
    ("device", "optimiser", "sentence"),
    [("cpu", "adamw", "one process on a GPU, .* on cpu"), ("cuda", "laprop", "adamw, got laprop")],
)
def test_what_cannot_be_recorded_is_said_before_data_is_read(tmp_path, monkeypatch, device, optimiser, sentence):
    monkeypatch.setattr(trainings, "device_name", lambda asked: device)
    with pytest.raises(UsageError, match=f"--graph needs .*{sentence}"):
        run("train", "vit-small-cifar", "--data", "nowhere", "--graph", "--set", f"optimiser.name={optimiser}")
    assert not any(tmp_path.iterdir())


def test_a_network_that_cannot_be_compiled_is_one_sentence(data_set, recipe_file, tmp_path, monkeypatch):
    def no_compiler(graph, inputs):
        raise OSError("no C++ compiler")

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=no_compiler))
    with pytest.raises(AttnAuditError, match=r"^The network cannot be compiled here \(no C\+\+ compiler\): repeat"):
        run("train", recipe_file, "--data", data_set, "--out", tmp_path / "run", "--device", "cpu", "--compile")


def test_recipes_are_listed():
    assert {row["recipe"] for row in json.loads(run("ls", "recipes", "--json").stdout)} >= {
        "vit-small-cifar", "study-vit-tiny", "study-deit-tiny", "deit-tiny",
    }  # fmt: skip


def test_verdicts_are_told_with_what_their_words_mean(tmp_path):
    result = run("judge", write_training(tmp_path / "run"))
    assert "refuted" in result.stdout
    assert "they do what the claim excludes" in result.stdout
    evaluated = run("judge", write_evaluation(tmp_path / "evaluation", pairs((-0.05, -0.06), (0.0, 0.0))))
    legend = "refuted, no gain: a gain of the claimed size, or of one point where the paper gives no size, is absent;"
    assert legend in " ".join(evaluated.stdout.split())
    assert "they do what the claim excludes" not in evaluated.stdout
    both = run("judge", tmp_path / "run", tmp_path / "evaluation")
    assert both.stdout.index("they do what the claim excludes") < both.stdout.index("rpc-robust: RPC-Attention beats")
    assert "Student's t over seeds at 97.5 %" in " ".join(both.stdout.split())  # under corruption and under attack


def test_evaluations_are_drawn_over_seeds(tmp_path):
    pytest.importorskip("matplotlib")
    evaluation = write_evaluation(tmp_path / "run", pairs((0.0, 0.01), (0.0, 0.01)))
    told = run("judge", evaluation, "--out", tmp_path / "images")
    for name in ("accuracy-by-strength", "gains"):
        assert f"{name}.csv" in told.stderr
        assert ">rpc4<" in (tmp_path / "images" / f"{name}.svg").read_text()


def test_a_claim_asked_for_by_name_that_cannot_be_judged_is_exit_code_1(tmp_path):
    evaluation = write_evaluation(tmp_path / "run", pairs((0.0, 0.01), (0.0, 0.01)))
    assert run("judge", evaluation).exit_code == 0
    assert run("judge", evaluation, "--claims", "rpc-robust").exit_code == 0
    told = run("judge", evaluation, "--claims", "rpc-robust,rpc-fine-tuned")
    assert told.exit_code == 1
    assert "rpc-robust" in told.stdout
    assert "rpc-fine-tuned is not judged: it needs" in told.stderr


def test_judging_nothing_of_ours_is_refused(tmp_path):
    with pytest.raises(RunFolderError, match=r"does not exist: .*attnaudit train or attnaudit robust"):
        run("judge", tmp_path / "nowhere")
    (tmp_path / "short.txt").write_text("a")
    with pytest.raises(RunFolderError, match=r"short.txt is a file: give folders written by attnaudit train"):
        run("judge", tmp_path / "short.txt")
    with pytest.raises(UsageError, match=r"^kpca-values .*attnaudit audit MODEL"):
        run("judge", write_course(tmp_path / "run", [0.5]), "--claims", "kpca-values")


def test_a_folder_of_a_trained_model_is_enough_to_audit_it(tmp_path, data_set, recipe_file, image_folder):
    out = tmp_path / "run"
    run("train", recipe_file, "--data", data_set, "--epochs", 1, "--out", out, "--device", "cpu")
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("card.json", "model.safetensors"):
        shutil.copy(out / name, moved / name)
    run("audit", moved, "--images", image_folder, "--limit", 1, "--references", "gaussian", "--out", tmp_path / "audit")
    assert (tmp_path / "audit" / "summary.json").exists()
