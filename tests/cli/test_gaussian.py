"""The laboratory on the command line."""

import csv
import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

FAST = {
    "align": ["--dim=4", "--length=8", "--runs=2", "--steps=60"],
    "landscape": ["--dim=4", "--length=8"],
    "finite-prompt": ["--dim=4", "--lengths=32,128", "--repeats=20", "--prompts=100", "--prompt-length=8"],
    "in-context": ["--dim=5", "--runs=2", "--steps=30", "--length=8", "--tasks=1,2", "--recovery-dim=8",
                   "--recovery-degrees=9", "--repeats=2"],
    "regularise": ["--dim=4", "--length=8", "--runs=2", "--steps=30", "--strengths=1"],
    "digits": ["--ranks=1,2", "--steps=20", "--length=16"],
}  # fmt: skip


@pytest.mark.parametrize("verb", ["landscape", "finite-prompt"])
def test_a_verb_prints_the_same_and_leaves_the_same_files_twice(cli, capsys, verb):
    seen = []
    for folder in ("first", "second"):
        assert cli("gaussian", verb, *FAST[verb], "--seed", "3", "--out", folder) == 0
        seen.append((capsys.readouterr().out, {path.name: path.read_bytes() for path in Path(folder).iterdir()}))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("verb", FAST)
def test_each_verb_prints_theory_beside_measurement_and_leaves_figures_and_tables(cli, capsys, verb):
    if verb == "digits":
        pytest.importorskip("sklearn")
    assert cli("gaussian", verb, *FAST[verb], "--seed", "3", "--out", "first") == 0
    out, err = capsys.readouterr()
    for word in ("theory", "measured", "z"):
        assert word in out
    assert "Took" in err
    assert "Wrote" in err
    assert Path(f"first/{verb}.svg").read_text().lstrip().startswith("<?xml")
    assert Path(f"first/{verb}.pdf").read_bytes().startswith(b"%PDF")
    assert pq.read_table(f"first/{verb}.parquet").num_rows > 0
    rows = list(csv.DictReader(Path(f"first/{verb}.csv").read_text().splitlines()))
    assert list(rows[0]) == ["quantity", "theory", "measured", "standard_error", "z", "note"]


def test_json_holds_checks_and_verdicts(cli, capsys):
    assert cli("gaussian", "finite-prompt", *FAST["finite-prompt"], "--json") == 0
    content = json.loads(capsys.readouterr().out)
    expected = {"one prompt, L = 128: sin²·L/Λ", "slope of log rms sin in log L"}
    assert {check["quantity"] for check in content["checks"]} > expected
    assert {verdict["claim"] for verdict in content["verdicts"]} == {"gaussian-finite-prompt"}
    assert os.listdir("attnaudit-runs") == ["gaussian-finite-prompt"]


def test_digits_prints_the_time_of_both_and_agrees_with_pca(cli, capsys):
    pytest.importorskip("sklearn")
    assert cli("gaussian", "digits", "--ranks=10", "--steps=20", "--length=16", "--json") == 0
    out, err = capsys.readouterr()
    assert "scikit-learn's PCA" in err
    assert "AttentionPCA" in err
    checks = {check["quantity"]: check for check in json.loads(out)["checks"]}
    assert checks["linear: |cos(Σμ, PC1)|"]["measured"] > 0.9999
    ten = checks["AttentionPCA(10): explained variance"]
    assert ten["measured"] == pytest.approx(ten["theory"], abs=1e-4)


def test_a_covariance_of_ones_own(cli, capsys):
    np.save("mine.npy", np.diag([3.0, 1.0, 0.5]))
    assert cli("gaussian", "landscape", "--covariance", "mine.npy") == 0
    assert "d = 3" in capsys.readouterr().out


BAD = [
    (("align", "--covariance", "lopsided.csv"), 2, "not symmetric"),
    (("landscape", "--covariance", "flat.csv"), 2, "not positive definite"),
    (("finite-prompt", "--covariance", "wide.csv"), 1, "square matrix"),
    (("align", "--covariance", "nowhere.csv"), 1, "cannot be read"),
    (("align", "--covariance", "good.csv", "--dim", "7"), 2, "--dim is 7"),
    (("align", "--length", "1"), 2, "≥ 2, got 1"),
    (("align", "--dim", "1"), 2, "≥ 2, got 1"),
    (
        ("align", "--dim", "3", "--out", "/proc/nope", "--steps", "1", "--runs", "2", "--length", "4"),
        1,
        "cannot be written",
    ),
    (("landscape", "--length", "1"), 2, "≥ 2, got 1"),
    (("landscape", "--axes", "1"), 2, "two numbers, such as 1,2, got 1"),
    (("landscape", "--axes", "one,two"), 2, "list of integers, such as 1,4,16, got one,two"),
    (("finite-prompt", "--lengths", "1,64"), 2, "≥ 2, got 1"),
    (("in-context", "--theta", "-1"), 2, "≥ 0, got -1"),
    (("in-context", "-n", "0"), 2, "≥ 1, got 0"),
    (("in-context", "--length", "1"), 2, "≥ 2, got 1"),
    (("digits", "--ranks", "99"), 2, "got 99"),
    (("astrology",), 2, "No such command"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), BAD, ids=[" ".join(b[0]) for b in BAD])
def test_bad_input_gets_one_sentence_and_leaves_nothing(refused, arguments, code, message):
    matrices = {"lopsided": [[1, 2], [0, 3]], "flat": [[1, 1], [1, 1]], "wide": [[1, 2, 3]], "good": [[2, 0], [0, 1]]}
    for name, rows in matrices.items():
        np.savetxt(f"{name}.csv", np.array(rows), delimiter=",")
    refused(("gaussian", *arguments), code, message)


def test_a_run_folder_is_refused_before_anything_is_computed(cli, capsys, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    assert cli("gaussian", "align", "--dim", "3", "--out", str(tmp_path / "run")) == 1
    assert "is a run folder: give --out another folder" in " ".join(capsys.readouterr().err.split())
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["run.json"]


def test_a_file_is_refused_as_a_folder_before_anything_is_computed(cli, capsys, tmp_path):
    (tmp_path / "file").write_text("kept")
    assert cli("gaussian", "align", "--dim", "3", "--out", str(tmp_path / "file")) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "file cannot be written (File exists): give --out another folder" in said
    assert "Took" not in said
    assert (tmp_path / "file").read_text() == "kept"


def test_what_does_not_fit_into_memory_is_said_in_a_sentence(cli, capsys):
    assert cli("gaussian", "regularise", "--dim", "4", "--length", "100000000000", "--device", "cpu") == 1
    assert re.fullmatch(
        r"attnaudit: Memory is too small for [\d,]{15,} bytes at once: choose smaller sizes\.",
        capsys.readouterr().err.strip().splitlines()[-1],
    )


@pytest.mark.parametrize(("option", "value"), [("--strengths", "0"), ("--strengths", "-1"), ("--rate", "inf")])
def test_what_cannot_be_trained_leaves_no_folder(cli, option, value):
    assert cli("gaussian", "regularise", "--dim", "4", f"{option}={value}", "--out", "run") == 2
    assert not Path("run").exists()


def test_a_strength_that_is_named_twice_counts_once(cli, capsys):
    tiny = ("gaussian", "regularise", "--dim", "3", "--steps", "2", "--runs", "2", "--length", "4", "--json")
    printed = []
    for strengths in ("1", "1,1"):
        assert cli(*tiny, "--strengths", strengths) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_the_claims_are_listed_and_an_audit_refuses_them(cli, capsys):
    assert cli("ls", "claims", "--json") == 0
    listed = {row["claim"]: row["judged by"] for row in json.loads(capsys.readouterr().out)}
    assert listed["gaussian-in-context"] == "attnaudit gaussian in-context"
    assert listed["kpca-values"] == "attnaudit audit MODEL --claims kpca-values"
    assert cli("ls", "claims", "gaussian-finite-prompt") == 0
    assert "Maulen-Soto & Boyer 2026" in capsys.readouterr().out
    assert cli("ls", "claims", "hearsay") == 2
    assert cli("audit", "test_vit", "--random-weights", "--claims", "gaussian-alignment") == 2
    assert "run attnaudit gaussian align" in capsys.readouterr().err
