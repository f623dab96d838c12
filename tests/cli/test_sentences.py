"""Fine-tuning on sentences and their evaluation, from the command line to the verdict."""

import json
import random
from pathlib import Path

import pytest

from attnaudit.robustness.noises import noisy
from attnaudit.sources.model import load_model, parse_model
from tests.sentence_data import write_data, write_encoder, write_tsv

pytest.importorskip("transformers")
TRAIN = [
    "--device", "cpu", "--set", "precision=fp32", "--set", "batch=8", "--set", "model.context=16", "--epochs", "2",
    "--set", "optimiser.rate=3e-3", "--set", "model.dropout=0",
]  # fmt: skip
RPC = ["--set", "model.attention=rpc", "--set", "model.attention_options={iterations: 2, asymmetric: true}"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path / "data")
    write_encoder(tmp_path / "encoder")
    return tmp_path


def train(cli, out, *more):
    return cli("train", "sst2-minilm", "--data", "data", "--set", "model.encoder=encoder", *TRAIN, "--out", out, *more)


def test_an_encoder_is_fine_tuned_evaluated_and_judged(cli, place, capsys):
    for seed in ("0", "1"):
        assert train(cli, f"softmax-{seed}", "--seed", seed) == 0
        assert train(cli, f"rpc-{seed}", "--seed", seed, *RPC) == 0
    assert "48 training and 20 test sentences of 2 classes, from encoder" in capsys.readouterr().err
    networks = [f"{name}-{seed}" for name in ("softmax", "rpc") for seed in (0, 1)]
    command = ("robust", *networks, "--tsv", "data/test.tsv", "--device", "cpu", "--rates", "0.2,0.5", "--out", "run")
    assert cli(*command, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["examples"] == "sentences"
    assert len(summary["accuracies"]) == len(networks) * (1 + 3 * 2)
    clean = {own["model"]: own["accuracy"] for own in summary["accuracies"] if own["condition"]["kind"] == "clean"}
    last = json.loads(Path("softmax-0/history.json").read_text())["epochs"][-1]
    assert clean["softmax-0"] == last["test_accuracy"]
    assert cli("judge", "run", "--claims", "rpc-fine-tuned", "--json", "--out", "figures") == 0
    (verdict,) = json.loads(capsys.readouterr().out)
    assert "points over sst2-minilm" in verdict["reason"]
    assert "3 noises" in verdict["reason"]
    assert Path("figures/accuracy-by-strength.svg").exists()


def test_noise_is_that_of_the_seed_and_the_prediction_that_of_the_network(cli, place, capsys):
    assert train(cli, "run", "--epochs", "1") == 0
    capsys.readouterr()
    command = ("robust", "run", "--tsv", "data/test.tsv", "--device", "cpu", "--noises", "typos", "--rates", "0.5")
    assert cli(*command, "--seed", "3", "--limit", "7", "--out", "evaluation", "--json") == 0
    found = json.loads(capsys.readouterr().out)["accuracies"][1]
    loaded = load_model(parse_model("run"))
    lines = Path("data/test.tsv").read_text().splitlines()[1:]
    right = 0
    for number in sorted(random.Random(3).sample(range(20), 7)):
        sentence, label = lines[number].split("\t")
        batch = loaded.tokenise([noisy(sentence, "typos", 0.5, number, 3)], 16)
        right += int(loaded.module.eval()(**batch).argmax()) == int(label)
    assert found["right"] == right


def test_a_fine_tuned_encoder_is_audited(cli, place):
    assert train(cli, "run", "--epochs", "1", *RPC) == 0
    Path("text.txt").write_text(Path("data/train.tsv").read_text().replace("\t", " "))
    options = ("--limit", "1", "--claims", "kpca-values", "--device", "cpu", "--out", "audit")
    assert cli("audit", "run", "--text", "text.txt", *options) == 0
    assert json.loads(Path("audit/summary.json").read_text())["capture"]["refused_layers"] == []


def test_a_training_resumes_only_with_the_same_encoder(cli, place, capsys):
    assert train(cli, "run", "--epochs", "1") == 0
    config = json.loads(Path("encoder/config.json").read_text())
    Path("encoder/config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-5}))
    assert train(cli, "run", "--epochs", "1") == 1
    assert "another" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "header", "words"),
    [
        ([("it is", 1)], "it was\t0", "must begin with a line that names its columns"),
        ([("it is", "good"), ("it is not", 0)], "sentence\tlabel", "label must be the number of a class"),
        ([("", 1), ("it is not", 0)], "sentence\tlabel", "has no sentence"),
        ([("who", 0), ("knows", 2)], "sentence\tlabel", "has 2 classes, but the largest label of bad.tsv is 2"),
    ],
)
def test_bad_sentences_are_said_in_one_line(cli, place, capsys, rows, header, words):
    assert train(cli, "run", "--epochs", "1") == 0
    capsys.readouterr()
    write_tsv(place / "bad.tsv", rows, header)
    assert cli("robust", "run", "--tsv", "bad.tsv", "--device", "cpu", "--out", "evaluation") == 1
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err


def test_what_is_for_images_is_refused_for_sentences(cli, place, capsys):
    assert train(cli, "run", "--epochs", "1") == 0
    for options, words in (
        (["--tsv", "data/test.tsv", "--attacks", "pgd"], "--attacks is for images"),
        (["--tsv", "data/test.tsv", "--eps", "1/255"], "--eps is for images"),
        (["--tsv", "data/test.tsv", "--corruptions", "all"], "--corruptions is for images"),
        (["--tsv", "data/test.tsv", "--parquet", "data/x.parquet"], "--images and --parquet are for images"),
        ([], "classifies sentences: give --tsv FILE"),
        (["--tsv", "data/test.tsv", "--rates", "2"], "--rates must be shares"),
        (["--tsv", "data/test.tsv", "--noises", "hail"], "Unknown noise"),
    ):
        assert cli("robust", "run", *options, "--device", "cpu") in (1, 2)
        assert words in " ".join(capsys.readouterr().err.split())
    for option in (("--noises", "all"), ("--rates", "0.5")):
        assert cli("robust", "vit-small-cifar", *option, "--attacks", "none") == 2
        assert f"{option[0]} is for sentences: give --tsv FILE" in " ".join(capsys.readouterr().err.split())
    assert cli("robust", "vit-small-cifar", "--tsv", "data/test.tsv", "--device", "cpu") == 1
    assert "does not classify sentences" in " ".join(capsys.readouterr().err.split())


def test_labels_of_fewer_classes_may_have_another_meaning(cli, place, capsys):
    rows = [(f"it is {word}", label) for label, word in enumerate(("bad", "fair", "good"))] * 8
    for half in ("train", "test"):
        write_tsv(place / "data" / f"{half}.tsv", rows)
    assert train(cli, "run", "--epochs", "1") == 0
    write_tsv(place / "two.tsv", [("it is bad", 0), ("it is good", 1)])
    assert cli("robust", "run", "--tsv", "two.tsv", "--device", "cpu", "--out", "evaluation") == 1
    words = "run has 3 classes, but the largest label of two.tsv is 1: give sentences of the model's classes."
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_context_longer_than_the_encoder_reads_is_refused(cli, place, capsys):
    assert train(cli, "run", "--set", "model.context=65") in (1, 2)
    assert "model.context must be ≤ the 64 tokens" in capsys.readouterr().err


def test_a_file_may_begin_with_a_byte_order_mark(cli, place, capsys):
    """As spreadsheets write it."""
    assert train(cli, "run", "--epochs", "1") == 0
    (place / "marked.tsv").write_bytes(b"\xef\xbb\xbf" + (place / "data" / "test.tsv").read_bytes())
    options = ("--noises", "none", "--device", "cpu", "--out", "evaluation")
    assert cli("robust", "run", "--tsv", "marked.tsv", *options) == 0


def test_the_regulariser_is_not_for_padded_sentences(cli, place, capsys):
    assert train(cli, "run", "--set", "pca_weight=1") in (1, 2)
    assert "pca_weight is for images and text" in " ".join(capsys.readouterr().err.split())
