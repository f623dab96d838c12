"""The answer in one sentence, for every finding."""

from dataclasses import replace

import pytest

from attnaudit.records.audit import open_audit
from attnaudit.records.audit_summary import CaptureSummary, ClaimWords
from attnaudit.records.verdict import Finding, HeadScore, MeanEstimate, Score, Verdict, VerdictWord
from attnaudit.report.answers import answer, answers
from attnaudit.report.verdict_cards import claim_words
from tests.report.synthetic import write_run

SUPPORTED, REFUTED, UNDECIDED = VerdictWord
WORDS = ClaimWords("", "", "kpca", heads_have="kernel-PCA values")


def estimate(mean, width=0.01):
    return MeanEstimate(mean, (mean - width, mean + width))


def score(mean, measure="overlap", width=0.01, **more):
    heads = more.pop("heads", (HeadScore(0, 0, estimate(mean), False, False),))
    return Score(measure, estimate(mean, width), inputs=12, informative=864, tolerance=0.2, heads=heads, **more)


def said(word, finding, *scores, words=WORDS, satisfying=0, heads=72, **more):
    verdict = Verdict("kpca-values", "MiniLM", word, finding, "the reason", scores, (), satisfying, heads, **more)
    return answer(verdict, words)


def test_at_chance_no_head_has_it_and_the_best_projection_is_named():
    found = said(REFUTED, Finding.AT_CHANCE, score(-0.3, "procrustes"), score(0.0, reach=estimate(0.05)))
    assert found == (
        "No head of MiniLM has kernel-PCA values: 0 of 72 heads, score 0.00 [-0.01, 0.01]; "
        "the best value projection could reach 0.05."
    )


def test_a_reach_below_the_score_is_not_named():
    found = said(REFUTED, Finding.AT_CHANCE, score(0.0, reach=estimate(-0.04)))
    assert found == "No head of MiniLM has kernel-PCA values: 0 of 72 heads, score 0.00 [-0.01, 0.01]."


def test_a_measure_that_supports_the_claim_is_not_the_one_that_is_named_where_it_is_refuted():
    found = said(REFUTED, Finding.PARTIAL, score(0.9, reach=estimate(0.95)), score(0.3, "procrustes"))
    assert "score 0.30 [0.29, 0.31]." in found


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (Finding.PARTIAL, "values, though the heads are closer to the claim than chance: 0 of 72"),
        (Finding.BELOW_CHANCE, "values, and the heads are farther from the claim than chance: 0 of 72"),
        (Finding.UNREALISABLE, "values, and no weights on these inputs could come near: 0 of 72"),
    ],
)
def test_other_refutations_say_where_the_heads_are(finding, words):
    assert f"No head of MiniLM has kernel-PCA {words}" in said(REFUTED, finding, score(0.1))


def test_a_head_that_is_not_excluded_is_not_denied():
    heads = (HeadScore(0, 0, estimate(0.7, 0.2), False, True),)
    found = said(REFUTED, Finding.AT_CHANCE, score(0.0, heads=heads))
    assert found.startswith("No head of MiniLM is seen to have kernel-PCA values: 0 of 72 heads")
    elsewhere = score(0.0, "procrustes", heads=(HeadScore(0, 0, estimate(0.1), False, False),))
    assert "seen" not in said(REFUTED, Finding.AT_CHANCE, score(0.0, heads=heads), elsewhere)


def test_where_it_is_supported_the_heads_are_counted_and_the_lowest_score_is_given():
    both = score(0.97), score(0.91, "procrustes")
    whole = said(SUPPORTED, Finding.IN_ALL_HEADS, *both, satisfying=72)
    assert whole == "All 72 heads of MiniLM have kernel-PCA values: score 0.91 [0.90, 0.92]."
    some = said(SUPPORTED, Finding.IN_SOME_HEADS, *both, satisfying=3)
    assert some == "3 of 72 heads of MiniLM have kernel-PCA values: mean score 0.91 [0.90, 0.92]."
    one = said(SUPPORTED, Finding.IN_SOME_HEADS, *both, satisfying=1)
    assert one.startswith("1 of 72 heads of MiniLM has kernel-PCA values:")
    only = said(SUPPORTED, Finding.IN_ALL_HEADS, *both, satisfying=1, heads=1)
    assert only.startswith("The only head of MiniLM has kernel-PCA values:")
    average = said(SUPPORTED, Finding.ON_AVERAGE, *both)
    assert average.startswith("On average the heads of MiniLM have kernel-PCA values, though none of 72 is certain to:")


def test_a_theorem_is_named_and_what_it_leaves_is_scored():
    impossible = {"impossible": {"the heads are causal": 72}}
    every = said(REFUTED, Finding.IMPOSSIBLE, Score("overlap", **impossible))
    assert every == (
        "No head of MiniLM can have kernel-PCA values: a theorem excludes all 72, because the heads are causal."
    )
    others = said(SUPPORTED, Finding.IN_SOME_HEADS, score(0.9, impossible={"causal": 12}), satisfying=60)
    assert others.endswith("mean score 0.90 [0.89, 0.91]; a theorem excludes 12 of the heads.")


@pytest.mark.parametrize(
    ("finding", "more", "words"),
    [
        (Finding.TOO_FEW_INPUTS, {"missing": "2 inputs, and 8 are needed"}, "2 inputs, and 8 are needed."),
        (Finding.NOT_IDENTIFIABLE, {"missing": "no head has 2d tokens"}, "no head has 2d tokens."),
        (
            Finding.NOT_MEASURED,
            {"missing": "no head has all three numbers"},
            "no head has all three numbers.",
        ),
        (Finding.TOO_WIDE, {}, "the interval is too wide (overlap 0.70 [0.50, 0.90]), more inputs narrow it."),
        (Finding.MEASURES_DISAGREE, {}, "measures disagree (overlap 0.70 [0.50, 0.90]), more inputs narrow it."),
    ],
)
def test_an_undecided_claim_says_what_is_missing(finding, more, words):
    found = said(UNDECIDED, finding, score(0.7, width=0.2), **more)
    assert found == f"It is undecided whether heads of MiniLM have kernel-PCA values: {words}"


def test_a_claim_without_words_for_heads_is_called_by_its_name():
    verdict = Verdict("mine", "MiniLM", REFUTED, Finding.AT_CHANCE, "r", (score(0.0),), (), 0, 72)
    own = ClaimWords("Mine.", "me", "mine")
    assert answer(verdict, own).startswith("No head of MiniLM satisfies mine: 0 of 72 heads")
    supported = replace(verdict, word=SUPPORTED, finding=Finding.IN_ALL_HEADS, satisfying=72)
    assert answer(supported, own).startswith("All 72 heads of MiniLM satisfy mine: ")


def test_a_run_that_is_older_than_these_words_is_answered_with_those_of_today():
    old = ClaimWords("", "", "kpca")
    assert "has kernel-PCA values" in said(REFUTED, Finding.AT_CHANCE, score(0.0), words=old)
    assert said(UNDECIDED, Finding.TOO_FEW_INPUTS, score(0.0), words=old).endswith("values: the reason.")


def test_a_claim_with_a_rule_of_its_own_is_answered_by_its_reason():
    assert said(SUPPORTED, Finding.SHOWN) == "kpca-values is supported for MiniLM: the reason."
    assert said(REFUTED, Finding.OTHER_NUMBERS) == "kpca-values is refuted (other numbers) for MiniLM: the reason."


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return open_audit(write_run(tmp_path_factory.mktemp("runs") / "run"))


def test_every_model_is_answered_by_its_first_claim_that_is_about_its_heads(run):
    assert list(answers(run)) == ["model"]
    assert answers(run)["model"].startswith("No head of model has kernel-PCA values: 0 of 6 heads, score ")
    theorem = Verdict("kpca-eigenvalues", "model", REFUTED, Finding.IMPOSSIBLE, "bounded")
    claims = {**run.summary.claims, "kpca-eigenvalues": claim_words("kpca-eigenvalues")}
    both = replace(run.summary, claims=claims, verdicts=(theorem, *run.verdicts))
    assert answers(replace(run, summary=both)) == answers(run)
    alone = replace(run.summary, claims=claims, verdicts=(theorem,))
    expected = "kpca-eigenvalues is refuted (impossible) for model: bounded."
    assert answers(replace(run, summary=alone)) == {"model": expected}


def test_a_model_without_verdicts_or_heads_is_answered_too(run):
    unjudged = replace(run.summary, verdicts=())
    assert answers(replace(run, summary=unjudged)) == {
        "model": "Heads of model were measured, and no claim was judged."
    }
    refused = CaptureSummary(None, (("blocks.0", "talking heads"),))
    nothing = replace(run.summary, models={"mlp": {}}, verdicts=(), capture=refused)
    assert answers(replace(run, summary=nothing)) == {
        "mlp": "No head of mlp was captured: 1 layer refused (talking heads)."
    }
    silent = replace(nothing, capture=CaptureSummary(None, ()))
    assert answers(replace(run, summary=silent)) == {"mlp": "No head of mlp was captured."}
