import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from attnaudit.claims.registry import CLAIMS, claims_named, theories_for
from attnaudit.claims.verdict import MEANINGS, Word, combine, word_of
from attnaudit.errors import UsageError
from attnaudit.measures import measure
from attnaudit.statistics.intervals import widened_level
from attnaudit.statistics.scores import Score, area_under_curve


def scored(low, high, **more):
    numbers = {"auc": 1.0, "heads": 100, "rejected": 0, "unidentifiable": 0} | more
    return Score("column_cosine_matched", (low + high) / 2, (low, high), **numbers)


@pytest.mark.parametrize(
    ("score", "word"),
    [
        (scored(0.8, 0.9), Word.SUPPORTED),
        (scored(0.79, 0.9), Word.INCONCLUSIVE),
        (scored(0.1, 0.7), Word.REFUTED),
        (scored(-0.1, 0.1), Word.INDISTINGUISHABLE),
        (scored(-0.5, -0.1), Word.INDISTINGUISHABLE),
        (scored(-0.1, 0.9), Word.INCONCLUSIVE),
        (scored(0.9, 1.0, auc=0.94), Word.NOT_IDENTIFIABLE),
        (scored(0.9, 1.0, heads=94, rejected=6), Word.NOT_MEASURABLE),
        (scored(0.9, 1.0, heads=95, rejected=5), Word.SUPPORTED),
        (Score("m", None, None, None, 0, 0, 7), Word.NOT_IDENTIFIABLE),
        (Score("m", None, None, None, 0, 0, 0), Word.NOT_MEASURABLE),
        (Score("m", 0.9, None, 1.0, 10, 0, 0), Word.INCONCLUSIVE),
    ],
)
def test_the_rule_for_one_measure(score, word):
    assert word_of(score) is word


S, R, I, N, M, U = (
    Word.SUPPORTED, Word.REFUTED, Word.INDISTINGUISHABLE, Word.NOT_IDENTIFIABLE, Word.NOT_MEASURABLE, Word.INCONCLUSIVE,
)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ((S, S), S), ((S, R), R), ((S, I), R), ((I, I), I), ((I, R), R), ((S, U), U), ((U, U), U), ((U, I), R),
        ((N, S), S), ((N, N), N), ((M, N), M), ((M, I), I),
    ],
)  # fmt: skip
def test_the_rule_for_several_measures(words, word):
    assert combine(words) is word


def test_the_threshold_is_settable():
    assert word_of(scored(0.55, 0.6), threshold=0.5) is Word.SUPPORTED


def test_area_under_curve_equals_scikit_learns():
    generator = np.random.default_rng(0)
    positive, negative = generator.integers(0, 8, 50).astype(float), generator.integers(0, 6, 70).astype(float)
    labels = np.r_[np.ones(50), np.zeros(70)]
    assert area_under_curve(positive, negative) == pytest.approx(roc_auc_score(labels, np.r_[positive, negative]))


def test_many_tests_widen_the_intervals():
    assert widened_level(1) == pytest.approx(0.95)
    assert widened_level(10) == pytest.approx(0.995)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda c: c.name)
def test_every_claim_is_complete(claim):
    assert claim.statement.endswith(".")
    assert any(year in claim.citation for year in ("2023", "2024", "2025", "2026"))
    for name in (*claim.deciding, *claim.shown):
        assert measure(name).name == name
    if claim.decide is None:
        assert all(measure(name).closer in ("higher", "lower") for name in claim.deciding)


def test_every_word_has_a_meaning():
    assert set(MEANINGS) == set(Word)


def test_claims_bring_the_theories_they_need():
    assert theories_for(claims_named(["kpca-values"])) == ("kpca",)
    assert theories_for(claims_named(["ksvd-values"])) == ("kpca", "ksvd")


def test_an_unknown_claim_is_refused():
    with pytest.raises(UsageError, match="no claim 'p-equals-np'; there are kpca-values"):
        claims_named(["p-equals-np"])
