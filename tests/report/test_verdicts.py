"""Verdicts and claims for the terminal, of whatever kind of record."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from attnaudit.claims.meanings import MEANINGS, RecordKind
from attnaudit.claims.registry import CLAIMS
from attnaudit.records.audit import open_audit
from attnaudit.records.audit_summary import ClaimWords
from attnaudit.records.verdict import Finding, MeanEstimate, Rank, Score, Verdict, VerdictWord
from attnaudit.report.claim_page import claim_page
from attnaudit.report.verdict_cards import claim_words, finding_meanings, verdict_card
from attnaudit.report.verdicts import audit_report, verdict_report
from tests.report.synthetic import JUDGED, write_run

SCORE = Score(
    "alignment",
    MeanEstimate(0.97, (0.9, 1.0)),
    inputs=9,
    informative=36,
    tolerance=0.1,
    means={"observed": 0.98, "chance": 0.1, "planted": 1.0},
    null="chance",
)
REFUTED = (VerdictWord.REFUTED, Finding.PARTIAL)


def printed(content):
    text = io.StringIO()
    Console(file=text, width=10_000).print(content)
    return text.getvalue()


def lines(content):
    return [" ".join(line.split()) for line in printed(content).splitlines() if line.strip()]


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda c: c.name)
def test_the_page_of_a_claim_says_everything_it_knows_of_itself(claim):
    page = printed(claim_page(claim))
    words = (claim.name, claim.statement, claim.citation, claim.formula, claim.rule, claim.needs, claim.command)
    for text in (*words, *claim.decided_by, *claim.shown, *claim.reads, *filter(None, [claim.limits])):
        assert text in page
    assert all(f"{finding.value}: {meaning}" in page for finding, meaning in claim.meanings.items())


def card(verdict):
    meanings = finding_meanings(verdict.claim, RecordKind.AUDIT)
    return lines(verdict_card(verdict, claim_words(verdict.claim), meanings))


def test_a_card_says_what_was_claimed_what_was_found_and_what_it_does_not_say():
    claim = CLAIMS["kpca-values"]
    assert card(Verdict(claim.name, "vit", *REFUTED, "procrustes 0.31 [0.30, 0.32]")) == [
        "kpca-values: refuted (partial)",
        f"claimed {claim.statement} ({claim.citation})",
        "found Closer to the claim than chance, but far from it. Procrustes 0.31 [0.30, 0.32].",
        f"but {claim.limits}",
    ]


def test_a_card_says_what_a_network_could_reach_and_what_other_gauges_do():
    reach = {"reach": MeanEstimate(0.04, (0.03, 0.05)), "fitted_reach": MeanEstimate(0.17, (0.16, 0.18))}
    shown = card(Verdict("kpca-values", "vit", *REFUTED, "r", (replace(SCORE, gauges=(-0.1, 0.31), **reach), SCORE)))
    assert (
        "at best A projection of the inputs that was fitted to the claim on half of them scores 0.04 [0.03, 0.05] on "
        "the other half, 0.17 [0.16, 0.18] on its own half (alignment)."
    ) in shown
    assert "gauges With other weights that compute the same, mean scores range from -0.10 to 0.31 (alignment)." in shown
    assert not any(
        line.startswith(("at best", "gauges")) for line in card(Verdict("x", "vit", *REFUTED, "r", (SCORE,)))
    )


def test_a_card_says_so_if_chance_is_not_a_random_projection_of_the_inputs():
    usual, turned = (
        card(Verdict("kpca-values", "vit", *REFUTED, "r", (replace(SCORE, null=null),)))
        for null in ("random_projection", "rotated")
    )
    assert not any(line.startswith("chance") for line in usual)
    assert any(line.startswith("chance The head's values turned at random") for line in turned)


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ((VerdictWord.SUPPORTED, Finding.IN_SOME_HEADS), "supported in 3 of 10 heads"),
        ((VerdictWord.SUPPORTED, Finding.IN_ALL_HEADS), "supported in all heads"),
        ((VerdictWord.SUPPORTED, Finding.SHOWN), "supported"),
        ((VerdictWord.REFUTED, Finding.AT_CHANCE), "refuted (at chance)"),
        ((VerdictWord.UNDECIDED, Finding.TOO_FEW_INPUTS), "undecided (too few inputs)"),
    ],
)
def test_word_and_finding_are_in_the_title(verdict, words):
    assert card(Verdict("kpca-values", "vit", *verdict, "r", satisfying=3, heads=10))[0] == f"kpca-values: {words}"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return open_audit(write_run(tmp_path_factory.mktemp("runs") / "run"))


def with_verdicts(run, *verdicts, **more):
    models = {verdict.model: run.summary.models["model"] for verdict in verdicts}
    claims = {verdict.claim: claim_words(verdict.claim) for verdict in verdicts} | more.pop("claims", {})
    summary = replace(run.summary, models=models or run.summary.models, claims=claims, verdicts=verdicts, **more)
    return replace(run, summary=summary)


def test_an_audit_is_reported_model_by_model_with_a_card_for_each_claim(run):
    report = lines(audit_report(run))
    assert report[0].startswith("No head of model has kernel-PCA values: 0 of 6 heads, score ")
    assert report[1] == "model: 6 heads, 8 independent inputs"
    assert report[2] == f"refuted: {', '.join(f'{claim} (at chance)' for claim in JUDGED)}"
    assert [line for line in report if line.startswith(tuple(f"{claim}: " for claim in JUDGED))] == [
        f"{claim}: refuted (at chance)" for claim in JUDGED
    ]
    assert any(line.startswith("at best A projection of the inputs") for line in report)
    assert "at chance up to 0.05" in report[-3]
    assert "procrustes is the similarity of V and V̇ after the best rotation" in report[-2]
    assert "at 95 % and 98.33 %, so that those of a claim hold jointly with 95 %." in report[-1]
    assert not any(line.startswith("Measures and their references") for line in report)


def test_details_show_every_measure_with_its_references(run):
    report = lines(audit_report(run, details=True, wide=True))
    assert "Measures and their references: model (null: random_projection)" in report
    (row,) = (line for line in report if line.startswith("value_subspace_overlap"))
    assert re.fullmatch(r"value_subspace_overlap 0\.\d+ 0\.\d+ 1 -?0\.\d\d \[-?0\.\d\d, 0\.\d\d\] -?0\.\d\d –", row)
    assert any(line.startswith("(linear_cka)") for line in report)  # shown, but not deciding


def test_nothing_is_cut_off_in_a_narrow_terminal(run):
    text = io.StringIO()
    Console(file=text, width=80).print(audit_report(run, details=True))
    assert "…" not in text.getvalue()
    assert "-0.00" not in text.getvalue()


@pytest.mark.parametrize(
    ("nulls", "words"),
    [
        ((), "chance; 1 is"),
        (("random_projection",), "chance, a random projection of the same inputs; 1 is"),
        (("gaussian", "mine"), "chance, noise of the size of the head's values"),
        (("random_projection", "mine"), "chance, a random projection of the same inputs or mine; 1 is"),
    ],
)
def test_the_footer_says_what_chance_is_in_these_verdicts(run, nulls, words):
    scores = tuple(replace(SCORE, null=null) for null in nulls)
    report = lines(audit_report(with_verdicts(run, Verdict("kpca-values", "vit", *REFUTED, "r", scores))))
    assert any(f"Scores: 0 is {words}" in line for line in report)


def test_bounds_of_0_are_printed_as_such(run):
    other = replace(run, summary=replace(run.summary, threshold=0.0, chance=0.0))
    assert "supported at 0 or above, and counts as at chance up to 0." in lines(audit_report(other))[-3]


def test_a_theorem_is_shown_once_whatever_the_number_of_models(run):
    theorem = (VerdictWord.REFUTED, Finding.IMPOSSIBLE)
    verdicts = [
        verdict
        for model in ("a", "b", "c")
        for verdict in (Verdict("kpca-values", model, *REFUTED, "r"), Verdict("kpca-eigenvalues", model, *theorem, "t"))
    ]
    report = lines(audit_report(with_verdicts(run, *verdicts)))
    assert report.count("kpca-values: refuted (partial)") == 3
    assert report.count("kpca-eigenvalues: refuted (impossible)") == 1
    assert report.index("By theorem, for every network") < report.index("kpca-eigenvalues: refuted (impossible)")
    assert "kpca-values 3" in report  # models by verdict
    assert "kpca-eigenvalues 3" not in report


def test_a_claim_of_a_users_own_is_shown_with_its_words(run):
    own = with_verdicts(
        run,
        Verdict("mine", "vit", VerdictWord.REFUTED, Finding.LOSS, "it lost"),
        claims={"mine": ClaimWords("Mine is best.", "me", "kpca", "It is a matter of taste.")},
    )
    report = lines(audit_report(own))
    for line in ("mine: refuted (a loss)", "claimed Mine is best. (me)", "found A loss. It lost.",
                 "but It is a matter of taste."):  # fmt: skip
        assert line in report


def test_a_ranking_needs_no_verdicts(run):
    rank = Rank("model", "kpca", 0.5, (SCORE,), *REFUTED)
    other = replace(run, summary=replace(run.summary, verdicts=(), ranking=(rank,)))
    wanted = "– kpca 0.97 [0.90, 1.00] – refuted (partial)"
    assert wanted in lines(audit_report(other))


def test_all_other_verdicts_are_by_claim():
    others = [Verdict("rpc-robust", name, VerdictWord.REFUTED, Finding.NO_GAIN, "r") for name in ("rpc2", "rpc4")]
    report = lines(verdict_report(others, {}))
    assert f"rpc-robust: {CLAIMS['rpc-robust'].statement}" in " ".join(report)
    assert {"rpc2 refuted (no gain) r", "rpc4 refuted (no gain) r"} <= set(report)


@pytest.mark.parametrize(
    ("claim", "finding"),
    [
        ("ksvd-regularised", Finding.AT_CHANCE),
        ("jproj-convergence", Finding.IN_BETWEEN),
        ("rpc-robust", Finding.NO_GAIN),
        ("gaussian-alignment", Finding.BELOW_CHANCE),
    ],
)
def test_findings_are_explained_as_they_were_meant(claim, finding):
    verdicts = [Verdict(claim, name, VerdictWord.REFUTED, finding, "r") for name in ("one", "other")]
    report = lines(verdict_report(verdicts, {claim: 0.975}))
    assert report.count(f"refuted, {finding}: {CLAIMS[claim].meanings[finding]}.") == 1
    assert "at 97.5 %, so that those of a claim hold jointly with 95 %." in report[-1]


@pytest.mark.parametrize("kind", RecordKind)
def test_every_finding_has_words_in_every_report(kind):
    """A rule of one's own may find anything."""
    for claim in (*CLAIMS, "mine"):
        assert set(finding_meanings(claim, kind)) == set(Finding)
    assert finding_meanings("mine", kind)[Finding.NOT_MEASURED] == MEANINGS[kind][Finding.NOT_MEASURED]


def test_scores_are_shown_wherever_there_are_some():
    verdict = Verdict(
        "gaussian-alignment", "linear", VerdictWord.SUPPORTED, Finding.ON_AVERAGE, "r", (SCORE,), (SCORE,)
    )
    report = lines(verdict_report([verdict], {}, wide=True))
    assert "alignment 0.98 0.1 1 0.97 [0.90, 1.00] – 10.0%" in report
    assert "(alignment) 0.98 0.1 1 0.97 [0.90, 1.00] – 10.0%" in report
    none = Verdict("rpc-robust", "x", VerdictWord.REFUTED, Finding.LOSS, "")
    assert not any("alignment" in line for line in lines(verdict_report([none], {})))
