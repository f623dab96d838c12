import pytest

from attnaudit.records.verdict import Finding, MeanEstimate, Score, VerdictWord
from attnaudit.statistics.decisions import combine, decide_gain, decide_gains, decide_score, decides

S, R, U = VerdictWord.SUPPORTED, VerdictWord.REFUTED, VerdictWord.UNDECIDED
AVERAGE, SHOWN = (S, Finding.ON_AVERAGE), (S, Finding.SHOWN)
PARTIAL, AT_CHANCE, BELOW = (R, Finding.PARTIAL), (R, Finding.AT_CHANCE), (R, Finding.BELOW_CHANCE)
UNREALISABLE, NO_GAIN, LOSS = (R, Finding.UNREALISABLE), (R, Finding.NO_GAIN), (R, Finding.LOSS)
TOO_WIDE, TOO_FEW = (U, Finding.TOO_WIDE), (U, Finding.TOO_FEW_INPUTS)
NOT_IDENTIFIABLE, NOT_MEASURED = (U, Finding.NOT_IDENTIFIABLE), (U, Finding.NOT_MEASURED)
DISAGREE = (U, Finding.MEASURES_DISAGREE)


def estimate(low, high):
    return MeanEstimate((low + high) / 2, (low, high))


def scored(low, high, **more):
    return Score("column_cosine_matched", **{"score": estimate(low, high), "inputs": 8, "informative": 100} | more)


@pytest.mark.parametrize(
    ("score", "decision"),
    [
        (scored(0.8, 0.9), AVERAGE),
        (scored(0.79, 0.9), TOO_WIDE),
        (scored(-0.1, 0.9), TOO_WIDE),
        (scored(0.051, 0.7), PARTIAL),
        (scored(0.05, 0.7), AT_CHANCE),
        (scored(0.0, 0.0), AT_CHANCE),
        (scored(-0.5, -0.05), AT_CHANCE),
        (scored(-2.72, -2.22), BELOW),
    ],
)
def test_the_rule_for_one_measure(score, decision):
    assert decide_score(score) == decision
    assert decides(score)


@pytest.mark.parametrize(
    ("score", "finding"),
    [
        (scored(0.9, 1.0, inputs=7), Finding.TOO_FEW_INPUTS),
        (scored(-1.0, -0.9, inputs=7), Finding.TOO_FEW_INPUTS),
        (Score("m", MeanEstimate(0.9, None), inputs=8, informative=8), Finding.TOO_FEW_INPUTS),
        (scored(0.9, 1.0, tolerance=0.049), Finding.NOT_IDENTIFIABLE),
        (scored(0.9, 1.0, informative=94, rejected=6), Finding.NOT_MEASURED),
        (Score("m", unidentifiable=7), Finding.NOT_IDENTIFIABLE),
        (Score("m", uninformative=7), Finding.NOT_IDENTIFIABLE),
        (Score("m"), Finding.NOT_MEASURED),
    ],
)
def test_a_measure_that_cannot_be_trusted_decides_nothing(score, finding):
    """Fewer than eight inputs, a fragile measure, too many rows without a number, or no score at all."""
    assert decide_score(score) == (U, finding)
    assert not decides(score)


def test_a_theorem_about_some_heads_refutes_nothing_of_others_that_have_no_number():
    excluded = {"a theorem": 1}
    assert decide_score(Score("m", impossible=excluded)) == (VerdictWord.REFUTED, Finding.IMPOSSIBLE)
    for others in ("unidentifiable", "uninformative", "rejected"):
        assert decide_score(Score("m", impossible=excluded, **{others: 12}))[0] is VerdictWord.UNDECIDED, others


@pytest.mark.parametrize("more", [{"tolerance": 0.05}, {"informative": 95, "rejected": 5}, {"unidentifiable": 900}])
def test_at_the_bounds_of_trust_a_measure_still_decides(more):
    assert decide_score(scored(0.9, 1.0, **more)) == AVERAGE


@pytest.mark.parametrize(
    ("more", "decision"),
    [
        ({"fitted_reach": estimate(0.1, 0.19)}, UNREALISABLE),
        ({"fitted_reach": estimate(0.1, 0.2)}, AT_CHANCE),
        ({"fitted_reach": MeanEstimate(0.1, None)}, AT_CHANCE),
        ({"reach": estimate(0.01, 0.02)}, AT_CHANCE),
        ({"reach": estimate(0.01, 0.02), "fitted_reach": estimate(0.1, 0.3)}, AT_CHANCE),
    ],
)
def test_only_the_upper_end_of_what_was_fitted_makes_a_claim_unrealisable(more, decision):
    assert decide_score(scored(0.0, 0.02, **more)) == decision


def test_a_claim_that_holds_is_not_called_unrealisable():
    assert decide_score(scored(0.9, 1.0, fitted_reach=estimate(0.0, 0.1))) == AVERAGE


def test_thresholds_and_the_least_number_of_inputs_are_settable():
    assert decide_score(scored(0.55, 0.6), threshold=0.5) == AVERAGE
    assert decide_score(scored(0.15, 0.3), chance=0.2) == AT_CHANCE
    assert decide_score(scored(0.9, 1.0, inputs=2), least=2) == AVERAGE
    assert not decides(scored(0.9, 1.0, inputs=2))


@pytest.mark.parametrize(
    ("decisions", "decision"),
    [
        ((AVERAGE, AVERAGE), AVERAGE),
        ((AVERAGE, PARTIAL), PARTIAL),
        ((AVERAGE, AT_CHANCE), AT_CHANCE),
        ((TOO_WIDE, BELOW), BELOW),
        ((AVERAGE, TOO_WIDE), DISAGREE),
        ((TOO_WIDE, TOO_WIDE), TOO_WIDE),
        ((NOT_IDENTIFIABLE, AVERAGE), AVERAGE),
        ((NOT_MEASURED, AT_CHANCE), AT_CHANCE),
        ((NOT_IDENTIFIABLE, NOT_MEASURED), NOT_IDENTIFIABLE),
        ((NOT_MEASURED, NOT_IDENTIFIABLE, TOO_FEW), TOO_FEW),
        ((), NOT_MEASURED),
    ],
)
def test_all_measures_must_support_a_claim_and_one_refutes_it_while_silent_ones_do_not_count(decisions, decision):
    assert combine(decisions) == decision
    assert combine(decisions[::-1]) == decision


@pytest.mark.parametrize(
    ("decisions", "decision"),
    [
        ((AT_CHANCE, PARTIAL), AT_CHANCE),
        ((BELOW, AT_CHANCE), AT_CHANCE),
        ((PARTIAL, BELOW), AT_CHANCE),
        ((PARTIAL, PARTIAL, AVERAGE), PARTIAL),
        ((BELOW, BELOW), BELOW),
        ((PARTIAL, UNREALISABLE), UNREALISABLE),
    ],
)
def test_a_claim_is_off_chance_only_by_all_measures_that_refute_it(decisions, decision):
    assert combine(decisions) == decision
    assert combine(decisions[::-1]) == decision


@pytest.mark.parametrize(
    ("interval", "decision"),
    [
        ((0.001, 0.3), SHOWN),
        ((-0.3, -0.001), LOSS),
        ((-0.02, 0.009), NO_GAIN),
        ((0.0, 0.005), NO_GAIN),
        ((-0.02, 0.01), TOO_WIDE),
        (None, TOO_FEW),
    ],
)
def test_a_gain_is_supported_above_0_and_refuted_below_the_smallest_of_interest(interval, decision):
    assert decide_gain(interval, smallest=0.01) == decision


@pytest.mark.parametrize(
    ("gains", "decision"),
    [
        ((SHOWN, SHOWN), SHOWN),
        ((SHOWN, TOO_WIDE), TOO_WIDE),
        ((SHOWN, NOT_MEASURED), NOT_MEASURED),
        ((SHOWN, NO_GAIN), NO_GAIN),
        ((NO_GAIN, LOSS), LOSS),
        ((TOO_WIDE, LOSS), LOSS),
        ((), NOT_MEASURED),
    ],
)
def test_where_all_gains_must_hold_an_unknown_one_leaves_it_open_and_a_missing_one_refutes(gains, decision):
    assert decide_gains(gains) == decision
    assert decide_gains(gains[::-1]) == decision


@pytest.mark.parametrize("other", [NO_GAIN, LOSS, TOO_WIDE, TOO_FEW, NOT_MEASURED, SHOWN])
def test_no_gain_twice_is_never_milder_than_no_gain_and_anything_else(other):
    assert decide_gains((NO_GAIN, NO_GAIN)) == NO_GAIN
    assert decide_gains((NO_GAIN, other))[0] is R
