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


#: A training whose outputs become projections.
GOOD = COURSE | {
    "output_above_phi": lambda epoch: 0.0,
    "phi_norm2": lambda epoch: 1.0,
    "projection_error_mae": lambda epoch: 0.1 if epoch else 0.9,
}


@pytest.mark.parametrize("lost", [0, 10])
@pytest.mark.parametrize(("layers", "words"), [(20, "supported"), (19, "undecided (not measured)")])
def test_with_more_than_a_twentieth_of_heads_missing_at_either_end_nothing_is_decided(tmp_path, lost, layers, words):
    """The first head is missing, in both batches."""
    (verdict,) = judged(write_training(tmp_path / "run", course=GOOD, lost=(lost,), layers=layers, heads=1))
    assert verdict.words == words
    if layers == 19:
        assert verdict.reason == "2 of 38 heads of a batch lack a number at the first or the last step"


def test_trainings_of_one_recipe_and_seed_are_told_apart(tmp_path):
    one, other = (write_training(tmp_path / name, course=GOOD) for name in ("one", "other"))
    assert all(str(path) in own.model for path, own in zip((one, other), judged(one, other), strict=True))


def test_numbers_at_the_limits_of_float64_end_in_words(tmp_path):
    """Sums of ‖φ‖² overflow; where it underflows, J is a share of nothing."""
    huge, tiny = (GOOD | {"phi_norm2": lambda epoch, size=size: size} for size in (1e308, 0.0))
    (verdict,) = judged(write_training(tmp_path / "huge", course=huge))
    assert verdict.words == "undecided (in between)"  # J was small beside ‖φ‖² from the start
    (verdict,) = judged(write_training(tmp_path / "tiny", course=tiny))
    assert (verdict.words, verdict.reason) == ("undecided (not measured)", "‖φ(q)‖² is too small for float64")


def test_the_same_heads_are_compared_at_both_ends(tmp_path):
    """J of layer n is 1 + n / 10 of that of the first, which is missing at the end: 2 on average without it."""
    options = {"course": GOOD, "layers": 20, "heads": 1, "batches": ("train",)}
    (verdict,) = judged(write_training(tmp_path / "run", lost=(10,), **options))
    assert verdict.reason.startswith("J 1.8 → 0.2, ")


def test_heads_missing_in_between_do_not_count(tmp_path):
    (verdict,) = judged(write_training(tmp_path / "run", course=GOOD, lost=(1, 2), layers=1, heads=1))
    assert verdict.words == "supported"


def test_a_training_without_a_monitor_says_nothing_of_projections(tmp_path):
    assert judged(write_course(tmp_path / "run", [0.5])) == ()
