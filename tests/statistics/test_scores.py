import numpy as np
import pytest

from attnaudit.statistics.scores import trial_score


def test_scores_of_repetitions_are_calibrated_between_chance_and_the_claim():
    score = trial_score("alignment", np.array([0.1, 1.0]), np.array([0.0, 0.1, 0.2]), 1.0, level=0.95)
    assert score.mean == pytest.approx(0.5)
    assert score.heads == 2
    low, high = score.interval
    assert low == pytest.approx(0.5 - 12.706 * 0.5, rel=1e-3)
    assert high == pytest.approx(0.5 + 12.706 * 0.5, rel=1e-3)
