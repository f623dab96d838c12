"""Figures 1 and 4 as a user meets them."""

import json
from pathlib import Path

import pytest

from attnaudit.papers.curves import FIGURE1, FIGURE4
from tests.cli.test_cli import cli, read_csv  # noqa: F401
from tests.training_runs import write_training

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(("item", "measures"), [("figure1", FIGURE1), ("figure4", FIGURE4)])
def test_a_training_is_drawn_beside_the_published_one(cli, capsys, item, measures):  # noqa: F811
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


def test_what_cannot_be_compared_or_was_not_measured_is_said(cli, capsys):  # noqa: F811
    write_training(Path("run"), dim=16, batches=("train",))
    assert cli("paper", "figure1", "run", "--out", "figures") == 0
    err = capsys.readouterr().err
    assert "no published points are marked" in err
    assert "not measured on a test batch" in err
    assert {row["source"] for row in read_csv("figures/figure1.csv")} == {"ours"}


BAD = [
    ((), 2, "attnaudit train study-vit-tiny --data"),
    (("nowhere",), 1, "There is no folder nowhere"),
    (("deit_tiny_patch16_224", "--random-weights"), 2, "leave out --random-weights"),
    (("run", "--images", "images"), 2, "leave out --images"),
    (("run", "--limit", "0"), 2, "leave out --limit"),
    (("run", "--cluster", "tcp://127.0.0.1:1"), 2, "is for tables"),
    (("run", "empty"), 1, "has no run.json"),
]


@pytest.mark.parametrize("item", ["figure1", "figure4"])
@pytest.mark.parametrize(("arguments", "code", "message"), BAD, ids=[" ".join(b[0]) for b in BAD])
def test_bad_input_gets_one_sentence_and_leaves_nothing(cli, capsys, item, arguments, code, message):  # noqa: F811
    write_training(Path("run"))
    Path("empty").mkdir()
    before = sorted(Path().iterdir())
    assert cli("paper", item, *arguments) == code
    out, err = capsys.readouterr()
    assert message in err
    assert err.count("\n") == 1
    assert out == ""
    assert sorted(Path().iterdir()) == before
