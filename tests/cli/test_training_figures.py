"""Figures 1 and 4 as a user meets them."""

import json
from pathlib import Path

import pytest

from attnaudit.papers.training_curves import FIGURE1, FIGURE4
from tests.cli.conftest import read_csv
from tests.training_runs import write_training

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(("item", "measures"), [("figure1", FIGURE1), ("figure4", FIGURE4)])
def test_a_training_is_drawn_beside_the_published_one(cli, capsys, item, measures):
    write_training(Path("run"), epochs=(0, 1, 2))
    assert cli("paper", item, "run", "--out", "figures", "--json") == 0
    out, err = capsys.readouterr()
    rows = read_csv(f"figures/{item}.csv")
    assert [row["value"] for row in rows] == [str(row["value"]) for row in json.loads(out)]
    assert sum(row["source"] == "ours" for row in rows) == len(measures) * 2 * 3
    assert sum(row["source"] == "published ViT-Tiny" for row in rows) == len(measures) * 2 * 6
    assert Path(f"figures/{item}.svg").read_text().lstrip().startswith("<?xml")
    assert Path(f"figures/{item}.pdf").read_bytes().startswith(b"%PDF")
    assert f"figures/{item}.pdf" in err
    assert "no published points" not in err


def test_what_cannot_be_compared_or_was_not_measured_is_said(cli, capsys):
    write_training(Path("run"), dim=16, batches=("train",))
    assert cli("paper", "figure1", "run", "--out", "figures") == 0
    err = capsys.readouterr().err
    assert "no published points" in err
    assert "not measured on a test batch" in err
    assert {row["source"] for row in read_csv("figures/figure1.csv")} == {"ours"}


BAD = [
    ((), 2, "attnaudit train study-vit-tiny --data"),
    (("nowhere",), 1, "There is no folder nowhere"),
    (("deit_tiny_patch16_224", "--random-weights"), 2, "omit --random-weights"),
    (("run", "--images", "images"), 2, "omit --images"),
    (("run", "--limit", "0"), 2, "omit --limit"),
    (("run", "--cluster", "tcp://127.0.0.1:1"), 2, "--cluster is for tables"),
    (("run", "empty"), 1, "has no run.json"),
]


@pytest.mark.parametrize("item", ["figure1", "figure4"])
@pytest.mark.parametrize(("arguments", "code", "message"), BAD, ids=[" ".join(b[0]) for b in BAD])
def test_bad_input_gets_one_sentence_and_leaves_nothing(refused, item, arguments, code, message):
    write_training(Path("run"))
    Path("empty").mkdir()
    refused(("paper", item, *arguments), code, message)
