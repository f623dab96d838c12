"""The instrument itself on trial: does it support what is true, and only that?"""

import pytest

from tests.measures.references.audits import (
    CLAIMS,
    MEASURES,
    simulated_audit,
    simulated_audits,
    simulated_heads,
    simulated_words,
)

AUDITS = 40


@pytest.fixture(scope="module")
def words():
    """Verdicts of many audits, on random and on planted heads."""
    return {
        kind: simulated_words([simulated_heads(seed, noise=noise) for seed in range(AUDITS)])
        for kind, noise in (("random", None), ("planted", 0.0))
    }


@pytest.mark.parametrize("claim", CLAIMS)
def test_size_no_audit_of_random_heads_supports_a_claim(words, claim):
    assert not any(audit[claim].startswith("supported") for audit in words["random"])


@pytest.mark.parametrize("claim", CLAIMS)
def test_power_every_audit_of_planted_heads_supports_a_claim_in_all_of_them(words, claim):
    assert {audit[claim] for audit in words["planted"]} == {"supported in all heads"}


def test_random_heads_are_called_chance(words):
    assert sum(audit["kpca-values"] == "refuted (at chance)" for audit in words["random"]) >= 0.95 * AUDITS


@pytest.fixture(scope="module")
def noisy():
    """Verdicts on planted heads with more and more noise, by how much."""
    noises = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0)
    audits = simulated_audits([simulated_heads(0, inputs=12, heads=4, noise=noise) for noise in noises])
    return {noise: audit["kpca-values"] for noise, audit in zip(noises, audits, strict=True)}


@pytest.mark.parametrize("measure", MEASURES)
def test_score_falls_as_noise_is_added(noisy, measure):
    scores = [next(own.score.mean for own in audit.scores if own.measure == measure) for audit in noisy.values()]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(1, abs=1e-6)
    assert scores[-1] < 0.1


def test_half_noise_is_refuted_not_supported_nor_chance(noisy):
    assert noisy[0.5].words == "refuted (partial)"


@pytest.mark.parametrize("tokens", [4, 6, 7])
def test_short_sequences_are_not_identifiable(tokens):
    """N - 1 ≤ d: the leading eigenvectors span everything, so nothing is said, even of planted heads."""
    heads = simulated_heads(0, tokens=tokens, dim=6, noise=None)
    for verdict in simulated_audit(heads).values():
        assert verdict.words == "undecided (not identifiable)"
        assert "N ≥ 2d" in verdict.reason


def test_the_studys_token_cosines_are_uninformative_where_columns_are_not():
    """For many heads planted values have no larger token cosines than the null, so that there is nothing to score."""
    verdict = simulated_audit(
        simulated_heads(0, inputs=12, heads=4, noise=0.0),
        measures=(*MEASURES, "direct_cosine_mean", "matched_cosine_mean"),
    )["kpca-values"]
    uninformative = {own.measure: own.uninformative for own in (*verdict.scores, *verdict.shown)}
    assert uninformative["column_cosine_matched"] == 0
    assert uninformative["direct_cosine_mean"] > 12
    assert uninformative["matched_cosine_mean"] > 12
