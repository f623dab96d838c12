"""Statistics of numbers near the end of float64 are finite, and those of usual numbers are numpy's to the bit."""

import numpy as np
import pytest
import torch

import attnaudit
from attnaudit.measures import Measure
from attnaudit.records import json_file
from attnaudit.records.head_values import HeadName, HeadTable
from attnaudit.statistics.huge import deviation, mean, median, shrinkage
from attnaudit.statistics.intervals import bootstrap_interval
from attnaudit.statistics.scores import head_score
from tests.claims.test_own import Encoder

HUGE = np.array([1.7e308, 1.5e308, 1.6e308, 1.4e308])
#: So that all of them can be computed at once, without the care.
SMALL = HUGE * 2.0**-700


def test_usual_numbers_have_the_bits_of_numpy():
    numbers = np.random.default_rng(0).normal(size=999) * 1e90
    assert (mean(numbers), median(numbers)) == (numbers.mean(), np.median(numbers))
    assert deviation(numbers) == numbers.std(ddof=1)
    assert shrinkage(numbers, np.array([np.inf, np.nan])) == 1


def test_huge_numbers_have_finite_statistics():
    assert mean(np.full(7, np.finfo(float).max)) == np.finfo(float).max
    assert mean(HUGE) * 2.0**-700 == pytest.approx(SMALL.mean())
    assert median(HUGE) * 2.0**-700 == pytest.approx(np.median(SMALL))
    assert deviation(HUGE) * 2.0**-700 == pytest.approx(SMALL.std(ddof=1))
    assert [end * 2.0**-700 for end in bootstrap_interval(HUGE, 0)] == pytest.approx(bootstrap_interval(SMALL, 0))


def test_a_deviation_beyond_float64_is_missing():
    assert deviation(np.array([-1.79e308, 1.79e308])) is None


def test_a_score_does_not_depend_on_the_unit_even_if_differences_are_beyond_float64():
    measure = Measure("m", "a measure", lambda at: None, closer="higher")
    null, planted, observed = (np.array(own) for own in ((-1.7, -1.6, -1.5), (1.7, 1.6, 1.7), (0.1, 0.2, 0.4)))
    references = {"observed": observed, "random_projection": null, "planted": planted}
    huge, usual = (
        head_score(
            HeadTable(
                np.arange(3),
                np.zeros(3, dtype=int),
                (HeadName(0, 0),),
                {name: unit * own for name, own in references.items()},
                {name: unit * own[:, None] for name, own in references.items()},
                0,
            ),
            measure,
        )
        for unit in (2.0**1023, 1.0)
    )
    assert (huge.score.mean, *huge.score.interval) == pytest.approx((usual.score.mean, *usual.score.interval))
    assert huge.means["planted"] / 2.0**1023 == pytest.approx(usual.means["planted"])


def test_an_audit_of_numbers_near_the_end_of_float64_ends_with_a_summary(tmp_path):
    def nearly_infinite(at):
        return torch.full((len(at.heads),), 1.7e308, dtype=torch.float64) - at.heads.value.double().abs().amax((1, 2))

    huge = Measure("huge", "nearly infinite", nearly_infinite, closer="higher", ideal=1.0)
    batch = torch.randn(3, 10, 16, generator=torch.Generator().manual_seed(1))
    run = attnaudit.audit(Encoder(tied=True), batch, claims=(), measures=[huge], out=tmp_path / "run", progress=False)
    found = run.summary.observed(run.models[0])["huge"]
    assert (found.mean, found.median) == pytest.approx((1.7e308, 1.7e308))
    assert found.interval == pytest.approx((1.7e308, 1.7e308))
    assert json_file.plain(attnaudit.open(run.path).summary) == json_file.plain(run.summary)
