"""Verdicts on the command line."""

import json

import pytest
from rich.console import Console

from attnaudit.cli import audit

pytest.importorskip("timm")
AUDIT = ("audit", "test_vit", "--random-weights", "--limit", "2", "--references", "random_projection,planted")
VALUES = ("--claims", "kpca-values,kpca-eigenvalues")


def test_verdicts_say_what_was_claimed_what_was_found_how_sure_it_is_and_what_it_does_not_say(
    cli, capsys, image_folder
):
    assert cli(*AUDIT, "--images", image_folder, *VALUES, "--theories", "pca") == 0
    out = " ".join(capsys.readouterr().out.split())
    for text in (
        "kpca-values: undecided (too few inputs)",
        "claimed ",
        "found Fewer than 8 independent inputs decide nothing. 2 independent inputs, and 8 are needed. Scores:",
        "but This is about the weights as they are stored",
        "Theories compared, best first",
        "By theorem, for every network",
        "Scores: 0 is chance",
        "at chance up to 0.05",
        "hold jointly with 95 %",
    ):
        assert text in out
    assert "Measures and their references" not in out


def test_a_terminal_ends_with_the_answer_and_a_log_has_it_once(cli, capsys, image_folder, monkeypatch):
    from attnaudit.report import console

    monkeypatch.setenv("COLUMNS", "200")

    for is_terminal, times in ((True, 2), (False, 1)):
        shown = Console(stderr=True, force_terminal=is_terminal, color_system=None, width=200)
        for place in (console, audit):
            monkeypatch.setattr(place, "message_console", lambda shown=shown: shown)
        assert cli(*AUDIT, "--images", image_folder, *VALUES) == 0
        out, err = capsys.readouterr()
        answer = out.splitlines()[0]
        assert (out + err).count(answer) == times
        assert (err.splitlines()[-1] == f"In short: {answer}") == is_terminal


def test_details_show_all_measures_and_chance_can_be_set(cli, capsys, image_folder):
    arguments = (*AUDIT, "--images", image_folder, *VALUES)
    assert cli(*arguments, "--details", "--chance", "0.2") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Measures and their references" in out
    assert "(null: random_projection)" in out
    assert "at chance up to 0.2" in out


def test_images_of_one_folder_can_count_as_one(cli, capsys, image_folder):
    """There are six in two folders."""
    arguments = ("audit", "test_vit", "--random-weights", "--images", image_folder, "--claims", "kpca-values")
    cheap = ("--references", "random_projection,planted", "--json")
    for more, inputs in (((), 6), (("--group-by-folder",), 2)):
        assert cli(*arguments, *cheap, *more) == 0
        (verdict,) = json.loads(capsys.readouterr().out)["verdicts"]
        assert {score["inputs"] for score in verdict["scores"]} == {inputs}


def test_verdicts_are_in_the_summary(cli, capsys, image_folder):
    assert cli(*AUDIT, "--images", image_folder, "--claims", "kpca-values,kpca-eigenvalues", "--json") == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert [v["claim"] for v in verdicts] == ["kpca-values", "kpca-eigenvalues"]
    assert (verdicts[0]["word"], verdicts[0]["finding"]) == ("undecided", "too few inputs")
    assert (verdicts[1]["word"], verdicts[1]["finding"]) == ("refuted", "impossible")


@pytest.mark.parametrize(
    ("claim", "words", "code"),
    [
        ("kpca-eigenvalues", "refuted", 3),
        ("kpca-eigenvalues", "supported", 0),
        ("kpca-eigenvalues", "undecided", 0),
        ("kpca-eigenvalues", "supported,unsupported", 3),
        ("kpca-values", "refuted", 0),
        ("kpca-values", "undecided", 3),
        ("kpca-values", "unsupported", 3),
    ],
)
def test_fail_on_sets_exit_code_3(cli, image_folder, claim, words, code):
    arguments = (*AUDIT, "--images", image_folder, "--claims", claim, "--limit", "1")
    assert cli(*arguments, "--fail-on", words) == code


def test_fail_on_without_claims_is_refused_before_anything_is_loaded(refused):
    words = "--fail-on unsupported needs claims: name some with --claims"
    refused(("audit", "no-such-model", "--claims", "none", "--fail-on", "unsupported"), 2, words)


def test_a_gate_does_not_pass_on_a_claim_that_it_could_not_test(cli, capsys, image_folder):
    arguments = (*AUDIT, "--images", image_folder, "--limit", "1", "--fail-on", "supported")
    assert cli(*arguments, "--claims", "kpca-eigenvalues,ksvd-regularised") == 1
    err = " ".join(capsys.readouterr().err.split())
    assert "ksvd-regularised is not judged: it needs" in err
    assert "--fail-on supported could not test ksvd-regularised: choose claims" in err


def test_a_gate_does_not_pass_on_a_claim_without_references_to_hold_it_against(cli, capsys, image_folder):
    arguments = (
        "audit",
        "test_vit",
        "--random-weights",
        "--limit",
        "2",
        "--references",
        "none",
        "--images",
        image_folder,
    )
    assert cli(*arguments, "--claims", "kpca-values", "--fail-on", "supported") == 1
    said = " ".join("".join(capsys.readouterr()).split())
    assert "--fail-on supported could not test kpca-values" in said
    assert "no head has all three numbers: the measure, its null and its ideal" in said


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


def test_the_page_of_a_claim_as_json(cli, capsys):
    assert cli("ls", "claims", "kpca-values", "--json") == 0
    page = json.loads(capsys.readouterr().out)
    assert page["claim"] == "kpca-values"
    assert page["formula"].startswith("V = G(I - 1_N)A, G = diag(1/g)")


def test_attacks_of_one_name_are_told_apart_by_their_protocol(cli, capsys):
    assert cli("ls", "attacks") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {tuple(row[:2]) for row in rows if row[:1] == ["pgd"]} == {("pgd", "exact"), ("pgd", "paper")}


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


def test_a_run_that_kept_summaries_is_reported_but_not_compared(cli, capsys, image_folder, tmp_path):
    out = tmp_path / "run"
    assert cli(*AUDIT, "--images", image_folder, *VALUES, "--keep", "summaries", "--out", out) == 0
    assert "kpca-values: undecided (too few inputs)" in capsys.readouterr().out
    assert cli("report", out) == 0
    assert cli("diff", out, out) == 1
    assert "kept summaries and no rows, which this needs" in " ".join(capsys.readouterr().err.split())
