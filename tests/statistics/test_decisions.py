import pytest

from attnaudit.records.verdict import Score, VerdictWord
from attnaudit.statistics.decisions import combined_word, word_if_all_hold, word_of_gain, word_of_score


def scored(low, high, **more):
    numbers = {"auc": 1.0, "heads": 100, "rejected": 0, "unidentifiable": 0} | more
    return Score("column_cosine_matched", (low + high) / 2, (low, high), **numbers)


@pytest.mark.parametrize(
    ("score", "word"),
    [
        (scored(0.8, 0.9), VerdictWord.SUPPORTED),
        (scored(0.79, 0.9), VerdictWord.INCONCLUSIVE),
        (scored(0.1, 0.7), VerdictWord.REFUTED),
        (scored(-0.1, 0.1), VerdictWord.INDISTINGUISHABLE),
        (scored(-0.5, -0.1), VerdictWord.INDISTINGUISHABLE),
        (scored(-0.1, 0.9), VerdictWord.INCONCLUSIVE),
        (scored(0.9, 1.0, auc=0.94), VerdictWord.NOT_IDENTIFIABLE),
        (scored(0.9, 1.0, heads=94, rejected=6), VerdictWord.NOT_MEASURABLE),
        (scored(0.9, 1.0, heads=95, rejected=5), VerdictWord.SUPPORTED),
        (Score("m", None, None, None, 0, 0, 7), VerdictWord.NOT_IDENTIFIABLE),
        (Score("m", None, None, None, 0, 0, 0), VerdictWord.NOT_MEASURABLE),
        (Score("m", 0.9, None, 1.0, 10, 0, 0), VerdictWord.INCONCLUSIVE),
    ],
)
def test_the_rule_for_one_measure(score, word):
    assert word_of_score(score) is word


S, R, I = VerdictWord.SUPPORTED, VerdictWord.REFUTED, VerdictWord.INDISTINGUISHABLE
N, M, U = VerdictWord.NOT_IDENTIFIABLE, VerdictWord.NOT_MEASURABLE, VerdictWord.INCONCLUSIVE


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ((S, S), S), ((S, R), R), ((S, I), R), ((I, I), I), ((I, R), R), ((S, U), U), ((U, U), U), ((U, I), R),
        ((N, S), S), ((N, N), N), ((M, N), M), ((M, I), I),
    ],
)  # fmt: skip
def test_the_rule_for_several_measures(words, word):
    assert combined_word(words) is word


def test_the_threshold_is_settable():
    assert word_of_score(scored(0.55, 0.6), threshold=0.5) is VerdictWord.SUPPORTED


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ((S, S), S), ((S, R), R), ((I, I), I), ((S, U), U),
        ((S, M), M), ((S, N), N), ((U, M), M), ((N, M), N), ((M, N), M), ((R, M), R), ((I, N), R),
    ],
)  # fmt: skip
def test_where_all_must_hold_an_unknown_part_leaves_it_open_and_a_failing_part_refutes(words, word):
    assert word_if_all_hold(words) is word


@pytest.mark.parametrize(
    ("interval", "word"),
    [((0.001, 0.3), S), ((-0.3, -0.001), R), ((-0.02, 0.009), I), ((-0.02, 0.01), U), ((0.0, 0.005), I), (None, U)],
)
def test_a_gain_is_supported_above_0_and_ruled_out_below_the_smallest_of_interest(interval, word):
    assert word_of_gain(interval, smallest=0.01) is word
