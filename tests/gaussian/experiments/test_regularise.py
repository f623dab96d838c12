"""The regulariser in the laboratory: pairs of runs, and where it must help and must not."""

import pytest

from attnaudit.claims.jury import judge
from attnaudit.claims.registry import CLAIMS
from attnaudit.errors import UsageError
from attnaudit.gaussian import HeadRecipe
from attnaudit.gaussian.experiments.regularise import GAUSSIAN, MISLED, logarithms, regularise
from attnaudit.records.verdict import VerdictWord
from tests.gaussian.setting import harmonic

SIGMA = harmonic(4)


@pytest.fixture(scope="module")
def found():
    recipe = HeadRecipe(steps=60, prompts=32, records=10)
    settings = {"strengths": (3.0,), "runs": 3, "recipe": recipe, "seed": 0, "progress": lambda done, total: None}
    return regularise(SIGMA, 8, **settings)


def test_runs_are_paired_by_start(found):
    for kernel in ("linear", "softmax"):
        plain, pulled = (logarithms(found.records, kernel, GAUSSIAN, strength) for strength in (0.0, 3.0))
        assert (plain[:, 0] == pulled[:, 0]).all()
        assert (plain[:, -1] != pulled[:, -1]).all()


def test_it_helps_where_it_points_to_the_first_direction_and_not_where_it_is_misled(found):
    gains = {(own.subject, own.measure): sum(own.observed) for own in found.trials}
    for kernel in ("linear", "softmax"):
        assert gains[f"{kernel}, gaussian, γ = 3", "speed"] > 0
        assert gains[f"{kernel}, {MISLED}, γ = 3", "speed"] < 0


def test_the_speed_is_the_mean_over_the_steps_after_the_start(found):
    for kernel in ("linear", "softmax"):
        plain, pulled = (logarithms(found.records, kernel, GAUSSIAN, strength) for strength in (0.0, 3.0))
        (own,) = (t for t in found.trials if (t.subject, t.measure) == (f"{kernel}, {GAUSSIAN}, γ = 3", "speed"))
        expected = [sum((one - other)[1:]) / (len(one) - 1) for one, other in zip(plain, pulled, strict=True)]
        assert list(own.observed) == pytest.approx(expected)


def test_every_gain_knows_what_the_misled_regulariser_loses(found):
    for kernel in ("linear", "softmax"):
        for measure in ("speed", "end"):
            own = {t.subject.split(", ")[1]: t for t in found.trials if t.measure == measure and kernel in t.subject}
            lost = -sum(own[MISLED].observed) / 3
            assert [trial.planted for trial in own.values()] == pytest.approx([lost] * 3)


def test_one_step_decides_nothing():
    recipe = HeadRecipe(steps=1, prompts=32, records=1)
    brief = regularise(SIGMA, 8, strengths=(3.0,), runs=4, recipe=recipe, seed=0, progress=lambda done, total: None)
    verdicts = judge([CLAIMS["gaussian-regulariser"]], brief.trials).verdicts
    assert {verdict.word for verdict in verdicts} == {VerdictWord.UNDECIDED}


def test_every_setting_is_in_the_table(found):
    assert len(found.checks) == 2 * 3 * 2
    assert len(found.trials) == 2 * 3 * 2


@pytest.mark.parametrize("strengths", [(), (0.0,), (1.0, -1.0), (float("nan"),), (1.0, float("inf"))])
def test_strengths_are_positive(strengths):
    with pytest.raises(UsageError, match="Strengths of the regulariser must be > 0 and finite"):
        regularise(SIGMA, 8, strengths=strengths, runs=2, recipe=HeadRecipe(), seed=0, progress=print)


def test_a_negative_weight_is_refused():
    with pytest.raises(UsageError, match="pca_weight must be ≥ 0"):
        HeadRecipe(pca_weight=-1.0)
