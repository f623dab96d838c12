"""The common rule for repeated trials of the laboratory; the one for heads is tested with claims of one's own."""

import pytest

from attnaudit.claims.claim import Terms
from attnaudit.claims.jury import judge
from attnaudit.claims.registry import CLAIMS
from attnaudit.records.trials import Trials
from attnaudit.records.verdict import HeadScore, MeanEstimate, Score, VerdictWord

ALIGNMENT = CLAIMS["gaussian-alignment"]
CHANCE = (0.0, 0.1, 0.2)


def trials(*observed, measure="alignment", subject="linear, gaussian", null=CHANCE, planted=1.0):
    return Trials(subject, measure, observed, null, planted)


@pytest.mark.parametrize(
    ("observed", "words"),
    [
        ((0.99, 1.0, 0.98), "supported on average"),
        ((0.4, 0.41, 0.42), "refuted (partial)"),
        ((0.05, 0.1, 0.12), "refuted (at chance)"),
        ((-0.99, -1.0, -0.98), "refuted (below chance)"),
        ((0.5, 1.0), "undecided (too wide)"),
        ((0.99,), "undecided (too few inputs)"),
    ],
)
def test_repeated_trainings_come_to_a_word(observed, words):
    verdicts = judge([ALIGNMENT], [trials(*observed)]).verdicts
    assert [verdict.words for verdict in verdicts] == [words]


def test_one_repetition_is_said_to_be_too_few():
    (verdict,) = judge([ALIGNMENT], [trials(0.99)]).verdicts
    assert verdict.reason.startswith("1 independent input, and 2 are needed. Scores: alignment 0.99")


def test_a_measure_that_chance_reaches_decides_nothing():
    verdicts = judge([ALIGNMENT], [trials(0.9, 0.91, null=(1.0, 1.0))]).verdicts
    assert verdicts[0].words == "undecided (not identifiable)"


def test_what_is_shown_beside_does_not_decide():
    found = judge([ALIGNMENT], [trials(0.99, 1.0, 0.98), trials(0.4, 0.4, 0.41, measure="readout_alignment")])
    verdicts = found.verdicts
    assert [verdict.word for verdict in verdicts] == [VerdictWord.SUPPORTED]
    assert [score.measure for score in verdicts[0].shown] == ["readout_alignment"]
    assert found.level == pytest.approx(0.95)


def test_subjects_are_judged_apart_and_measures_together():
    claim = CLAIMS["gaussian-finite-prompt"]
    rate = trials(0.5, 0.51, 0.49, measure="sampling_rate", null=(0.0, 0.01), planted=0.5)
    found = judge(
        [claim],
        [
            rate,
            trials(0.99, 0.98, 0.99),
            trials(0.1, 0.12, 0.09, subject="reference"),
            trials(1.0, 1.0, measure="other"),
        ],
    )
    verdicts = found.verdicts
    assert [(verdict.model, verdict.word) for verdict in verdicts] == [
        ("linear, gaussian", VerdictWord.SUPPORTED),
        ("reference", VerdictWord.REFUTED),
    ]
    assert len(verdicts[0].scores) == 2
    assert found.levels == {claim.name: pytest.approx(1 - 0.05 / 3)}


def test_a_training_that_diverged_refutes_nothing():
    verdicts = judge([ALIGNMENT], [trials(1.0, float("nan"), 1.0)]).verdicts
    assert verdicts[0].words == "undecided (not measured)"


@pytest.mark.parametrize(("unscored", "words"), [(0, "supported in all heads"), (2, "supported in 1 of 1 heads")])
def test_heads_without_a_score_are_not_among_all_that_satisfy(unscored, words):
    estimate = MeanEstimate(0.95, (0.9, 1.0))
    found = Score(
        "keys", estimate, inputs=8, informative=8, heads=(HeadScore(0, 0, estimate, True, True),), unscored=unscored
    )
    verdict = CLAIMS["keys-linear"].verdict("model", [found], [], Terms())
    assert verdict.words == words
    assert ("2 heads have no score" in verdict.reason) == bool(unscored)
