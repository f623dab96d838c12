"""Verdicts on the command line."""

import json

import pytest

pytest.importorskip("timm")
AUDIT = ("audit", "test_vit", "--random-weights", "--limit", "2", "--references", "gaussian,other_head,planted")


def test_verdicts_come_with_scores_words_and_their_meaning(cli, capsys, image_folder):
    assert cli(*AUDIT, "--images", image_folder, "--theories", "pca") == 0
    out = capsys.readouterr().out
    for text in ("Measures and their references", "no power", "Verdicts:", "Which theory explains", "Bonferroni"):
        assert text in out


def test_verdicts_are_in_the_summary(cli, capsys, image_folder):
    assert cli(*AUDIT, "--images", image_folder, "--claims", "kpca-values,kpca-eigenvalues", "--json") == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert [v["claim"] for v in verdicts] == ["kpca-values", "kpca-eigenvalues"]
    assert verdicts[1]["word"] == "refuted"


@pytest.mark.parametrize(("words", "code"), [("refuted", 3), ("supported", 0), ("supported,refuted", 3)])
def test_fail_on_sets_exit_code_3(cli, image_folder, words, code):
    arguments = (*AUDIT, "--images", image_folder, "--claims", "kpca-eigenvalues", "--fail-on", words)
    assert cli(*arguments) == code


def test_without_claims_the_plain_numbers_are_printed(cli, capsys, image_folder):
    assert cli(*AUDIT, "--images", image_folder, "--claims", "none") == 0
    assert "kernel_cka" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--claims", "hearsay"), "'hearsay'"),
        (("--references", "placebo"), "'placebo'"),
        (("--theories", "astrology"), "'astrology'"),
        (("--fail-on", "guilty"), "'guilty'"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(refused, image_folder, arguments, message):
    refused(("audit", "test_vit", "--random-weights", "--images", image_folder, *arguments), 2, message)


def test_a_claim_has_a_page(cli, capsys):
    assert cli("ls", "claims", "kpca-values") == 0
    out = capsys.readouterr().out
    for text in ("statement", "Teo & Nguyen 2024", "V = G(I - 1_N)A", "decided by", "column_cosine_matched"):
        assert text in out
    assert cli("ls", "measures", "linear_cka") == 2


@pytest.mark.parametrize("kind", ["claims", "references", "theories"])
def test_lists(cli, capsys, kind):
    assert cli("ls", kind) == 0
    assert {"claims": "ksvd-values", "references": "untrained", "theories": "pca"}[kind] in capsys.readouterr().out


def test_forensics_shows_the_published_numbers_and_the_closest_conventions(cli, capsys, image_folder):
    arguments = ("paper", "forensics", "test_vit", "--random-weights", "--images", image_folder, "--limit", "1")
    assert cli(*arguments, "--out", "forensics") == 0
    out = capsys.readouterr().out
    assert "648.46" in out
    assert "of 96 conventions" in out
