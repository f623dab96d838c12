"""Outputs that become projections or not: words from made-up trainings whose answer is known."""

import pytest

from attnaudit.claims.jury import judge
from attnaudit.claims.registry import CLAIMS
from attnaudit.records.training import open_trainings
from tests.training_runs import COURSE, write_course, write_training

CLAIM = CLAIMS["jproj-convergence"]


def judged(*paths):
    return judge([CLAIM], open_trainings(paths)).verdicts


@pytest.mark.parametrize(
    ("above", "share", "words"),
    [
        (1.0, -9.0, "refuted (impossible)"),
        (0.6, 0.9, "refuted (impossible)"),
        (0.0, 0.9, "supported"),
        (0.0, 0.4, "undecided (in between)"),
        (0.2, 0.9, "undecided (in between)"),
    ],
)
def test_a_projection_is_shorter_than_what_it_projects_and_holds_most_of_it(tmp_path, above, share, words):
    """`share` is what outputs hold of ‖φ‖² at the end, a tenth at first; outputs that vanish hold nothing."""
    course = COURSE | {
        "output_above_phi": lambda epoch: above,
        "phi_norm2": lambda epoch: 1.0,
        "projection_error_mae": lambda epoch: 1 - (share if epoch else 0.1),
    }
    (verdict,) = judged(write_training(tmp_path / "run", course=course, layers=1, heads=1, batches=("train",)))
    assert verdict.words == words
    assert f"{above:.1%} of tokens at the end" in verdict.reason


def test_a_start_alone_or_missing_numbers_say_nothing(tmp_path):
    runs = [
        write_training(tmp_path / "start", epochs=(0,)),
        write_training(tmp_path / "lost", epochs=(0, 1), lost=(1,), layers=1, heads=1),
    ]
    assert [verdict.words for verdict in judged(*runs)] == ["undecided (not measured)"] * 2


def test_a_training_without_a_monitor_says_nothing_of_projections(tmp_path):
    assert judged(write_course(tmp_path / "run", [0.5])) == ()
