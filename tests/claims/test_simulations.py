"""Verdicts on layers whose truth is known; `benchmarks/verdict_simulations.py` has many more of each."""

import pytest
from benchmarks.simulated_layers import CASES, HEADS, KPCA
from benchmarks.verdict_simulations import Job, audit

from attnaudit.records.verdict import Finding, VerdictWord


def outcomes(case, inputs=8, seed=0):
    return [said.outcome for said in audit(Job(case, inputs, seed))]


@pytest.mark.parametrize("case", ["random projection", "shared by all heads"])
def test_nothing_is_found_where_nothing_is_true(case):
    for outcome in outcomes(case):
        assert outcome.word is VerdictWord.REFUTED
        assert outcome.above_chance == ()


@pytest.mark.parametrize("case", ["kernel PCA, 5% noise", "kernel SVD, 5% noise"])
def test_what_is_planted_is_found_in_every_head_in_spite_of_noise(case):
    for outcome in outcomes(case):
        assert (outcome.word, outcome.finding) == (VerdictWord.SUPPORTED, Finding.IN_ALL_HEADS)
        assert outcome.satisfying == tuple(range(HEADS))


@pytest.mark.parametrize("case", ["1 of 10 heads", "9 of 10 heads"])
def test_heads_that_are_true_are_named_and_no_others(case):
    true = tuple(range(CASES[case].true))
    for outcome in outcomes(case):
        assert (outcome.word, outcome.finding) == (VerdictWord.SUPPORTED, Finding.IN_SOME_HEADS)
        assert (outcome.satisfying, outcome.above_chance) == (true, true)


def test_the_right_span_in_another_basis_is_not_what_the_claim_says():
    found = {outcome.claim: outcome for outcome in outcomes("prediction times a rotation")}
    assert [found[claim].finding for claim in KPCA] == [Finding.PARTIAL] * len(KPCA)
    scores = found["kpca-values"].scores
    assert scores["value_subspace_overlap"][0] == pytest.approx(1)
    assert scores["column_cosine_matched"][2] < 0.8
