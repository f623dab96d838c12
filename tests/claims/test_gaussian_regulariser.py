"""The regulariser's claim: a gain in sin² over training, from pairs whose answer is known."""

import pytest

from attnaudit.claims.jury import judge
from attnaudit.claims.registry import CLAIMS
from attnaudit.records.trials import Trials

CLAIM = CLAIMS["gaussian-regulariser"]
SPREAD = (-0.02, -0.01, 0.0, 0.01, 0.02)


def judged(gain, spread=SPREAD, misled=1.0):
    values = tuple(gain + own for own in spread)
    trials = [Trials("linear", measure, values, (0.0,), misled) for measure in ("speed", "end")]
    (verdict,) = judge([CLAIM], trials).verdicts
    return verdict


@pytest.mark.parametrize(
    ("gain", "spread", "words"),
    [
        (0.5, SPREAD, "supported"),
        (-0.5, SPREAD, "refuted (a loss)"),
        (0.0, SPREAD, "refuted (no gain)"),
        (0.1, (-1, 0.5, 0, -0.5, 1), "undecided (too wide)"),
    ],
)
def test_the_word_follows_from_the_interval_of_the_gain(gain, spread, words):
    assert judged(gain, spread).words == words


@pytest.mark.parametrize("misled", [0.09, 0.0, -1.0])
def test_no_gain_refutes_only_where_a_regulariser_could_matter(misled):
    assert judged(0.0, misled=misled).words == "undecided (not identifiable)"
    assert judged(0.5, misled=misled).words == "supported"
    assert judged(-0.5, misled=misled).words == "refuted (a loss)"


def test_the_reason_has_gain_interval_end_and_number_of_pairs():
    reason = judged(0.5).reason
    assert reason.startswith("decades of sin² gained over training: +0.50 [+0.4")
    assert reason.endswith("at the end +0.50, 5 pairs of runs")
