"""`attnaudit train`: what it prints, and that what it leaves can be audited."""

import json
from pathlib import Path

import pytest

from tests.training.conftest import LINE

SMALL = [
    "--epochs", "1", "--device", "cpu", "--set", "model.context=16", "--set", "model.width=8", "--set", "model.depth=1",
    "--set", "model.heads=2", "--set", "batch=2", "--set", "precision=fp32", "--set", "min_count=1",
]  # fmt: skip


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(LINE * 20)
    return path


def test_a_language_model_is_trained_and_both_perplexities_are_printed(cli, book, capsys):
    assert cli("train", "lm", "--data", book, *SMALL, "--set", "swap_rate=0.25", "--out", "run") == 0
    out, err = capsys.readouterr()
    assert "Training lm, seed 0, on 198 training and 22 test words, 12 distinct, on cpu" in err
    last = json.loads(Path("run/history.json").read_text())["epochs"][-1]
    clean, swapped = last["test_perplexity"], last["swapped_perplexity"]
    assert f"TrainingResult(lm, seed 0: test perplexity {clean:.1f}, 25% of words swapped {swapped:.1f})" in out


def test_json_has_the_facts_and_nothing_else(cli, book, capsys):
    assert cli("train", "lm", "--data", book, *SMALL, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert {"test_perplexity", "swapped_perplexity", "unigram_perplexity", "swap_rate"} < facts.keys()


def test_a_trained_language_model_is_audited_on_text(cli, book, capsys):
    cli("train", "lm", "--data", book, *SMALL, "--set", "model.attention=rpc", "--out", "run")
    options = ("--limit", "1", "--claims", "kpca-values", "--device", "cpu", "--out", "audit")
    assert cli("audit", "run", "--text", book, *options) == 0
    capture = json.loads(Path("audit/summary.json").read_text())["capture"]
    assert capture["replay_error"] < 1e-5
    assert capture["refused_layers"] == []
    assert cli("audit", "run", "--images", book.parent, "--out", "other") == 2
    assert "run reads text" in capsys.readouterr().err


def test_text_that_is_not_there_is_said_in_a_sentence(cli, capsys):
    assert cli("train", "lm") == 1
    assert "give --data DIR, or put wikitext/ into ATTNAUDIT_DATA" in (" ".join(capsys.readouterr().err.split()))


@pytest.mark.parametrize(
    ("text", "sentence"), [("\n\n", "is empty"), (LINE * 2, "model.context"), ("word", "has only one line")]
)
def test_text_to_learn_nothing_from_is_an_error_of_one_line(cli, tmp_path, capsys, text, sentence):
    (tmp_path / "short.txt").write_text(text)
    assert cli("train", "lm", "--data", "short.txt", *SMALL) == 1
    assert sentence in capsys.readouterr().err
    assert not Path("attnaudit-runs").exists()
