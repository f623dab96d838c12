"""The instrument itself on trial: does it support what is true, and only that?"""

import pytest

from attnaudit.records.verdict import VerdictWord
from tests.measures.references.audits import (
    CLAIMS,
    MEASURES,
    simulated_audit,
    simulated_audits,
    simulated_heads,
    simulated_words,
)

AUDITS = 300


@pytest.fixture(scope="module")
def words():
    """Verdicts of many audits, on random and on planted heads."""
    return {
        kind: simulated_words([simulated_heads(seed, noise=noise) for seed in range(AUDITS)])
        for kind, noise in (("random", None), ("planted", 0.0))
    }


@pytest.mark.parametrize("claim", CLAIMS)
def test_size_random_heads_are_supported_in_less_than_one_per_cent_of_audits(words, claim):
    assert sum(audit[claim] is VerdictWord.SUPPORTED for audit in words["random"]) < 0.01 * AUDITS


@pytest.mark.parametrize("claim", CLAIMS)
def test_power_planted_heads_are_supported_in_more_than_99_per_cent_of_audits(words, claim):
    assert sum(audit[claim] is VerdictWord.SUPPORTED for audit in words["planted"]) > 0.99 * AUDITS


def test_random_heads_are_mostly_called_indistinguishable(words):
    assert sum(audit["kpca-values"] is VerdictWord.INDISTINGUISHABLE for audit in words["random"]) > 0.9 * AUDITS


@pytest.fixture(scope="module")
def noisy():
    """Verdicts on planted heads with more and more noise, by how much."""
    noises = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)
    audits = simulated_audits([simulated_heads(0, inputs=12, heads=4, noise=noise) for noise in noises])
    return {noise: audit["kpca-values"] for noise, audit in zip(noises, audits, strict=True)}


@pytest.mark.parametrize("measure", ["column_cosine_matched", "subspace_overlap", "procrustes"])
def test_score_falls_as_noise_is_added(noisy, measure):
    scores = [next(entry.mean for entry in audit.scores if entry.measure == measure) for audit in noisy.values()]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(1, abs=1e-6)
    assert scores[-1] < 0.1


def test_half_noise_is_refuted_not_supported_nor_chance(noisy):
    assert noisy[0.5].word is VerdictWord.REFUTED


@pytest.mark.parametrize("tokens", [4, 6, 7])
def test_short_sequences_are_not_identifiable(tokens):
    """N - 1 ≤ d: the leading eigenvectors span everything, so nothing is said, even of planted heads."""
    heads = simulated_heads(0, tokens=tokens, dim=6, noise=None)
    for verdict in simulated_audit(heads).values():
        assert verdict.word is VerdictWord.NOT_IDENTIFIABLE
        assert "N ≥ 2d" in verdict.reason


def test_the_studys_token_cosines_have_no_power_where_columns_have():
    verdict = simulated_audit(
        simulated_heads(0, inputs=12, heads=4, noise=0.0),
        measures=(*MEASURES, "direct_cosine_mean", "matched_cosine_mean"),
    )["kpca-values"]
    power = {entry.measure: entry.has_power for entry in (*verdict.scores, *verdict.shown)}
    assert power["column_cosine_matched"]
    assert not power["direct_cosine_mean"]
    assert not power["matched_cosine_mean"]
