"""Scaled against softmax attention: words from made-up trainings whose answer is known."""

import pytest

from attnaudit.claims.jury import judge
from attnaudit.claims.registry import CLAIMS
from attnaudit.errors import UsageError
from attnaudit.records.training import open_trainings
from attnaudit.records.verdict import VerdictWord
from tests.training_runs import write_course

CLAIM = CLAIMS["scaled-attention-converges-faster"]


def judged(*paths):
    return judge([CLAIM], open_trainings(paths)).verdicts


def courses(tmp_path, gains, epochs=50, softmax_epochs=50, data="same", **more):
    """Softmax and scaled runs of as many seeds as there are gains; accuracy rises the same way in all."""
    paths = []
    for seed, gain in enumerate(gains):
        base = [0.3 + 0.01 * epoch + 0.02 * seed for epoch in range(softmax_epochs)]
        ahead = [0.3 + 0.01 * epoch + 0.02 * seed + gain for epoch in range(epochs)]
        paths.append(write_course(tmp_path / f"softmax-{seed}", base, seed=seed))
        options = {"form": "alpha"}
        paths.append(
            write_course(
                tmp_path / f"scaled-{seed}", ahead, seed=seed, attention="scaled", options=options, data=data, **more
            )
        )
    return paths


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        ((0.02, 0.021, 0.019), "supported"),
        ((-0.02, -0.021, -0.019), "refuted (a loss)"),
        ((0.0001, -0.0001, 0.0), "refuted (no gain)"),
        ((0.03, -0.03, 0.01), "undecided (too wide)"),
        ((0.03,), "undecided (too few inputs)"),
    ],
)
def test_faster_is_ahead_of_softmax_by_more_than_seeds_differ(tmp_path, gains, words):
    (verdict,) = judged(*courses(tmp_path, gains))
    assert (verdict.model, verdict.words) == ("scaled, alpha", words)


def test_only_epochs_that_all_runs_have_are_compared(tmp_path):
    (verdict,) = judged(*courses(tmp_path, (0.02, 0.02, 0.021), epochs=12))
    assert "epochs 1 to 12 is +2.03 points" in verdict.reason
    assert verdict.word is VerdictWord.SUPPORTED


def test_epochs_after_the_fiftieth_do_not_count(tmp_path):
    (verdict,) = judged(*courses(tmp_path, (0.02, 0.021, 0.02), epochs=60, softmax_epochs=60))
    assert "epochs 1 to 50 is" in verdict.reason


def test_a_few_epochs_decide_nothing(tmp_path):
    (verdict,) = judged(*courses(tmp_path, (0.02, 0.02, 0.021), epochs=7))
    assert verdict.word is VerdictWord.UNDECIDED


def test_runs_on_other_data_are_not_compared(tmp_path):
    assert judged(*courses(tmp_path, (0.02, 0.02), data="other")) == ()


def test_a_variant_in_some_layers_is_a_variant_of_its_own_and_a_repeated_run_is_refused(tmp_path):
    paths = courses(tmp_path, (0.02, 0.021, 0.02))
    for seed in range(3):
        more = {"seed": seed, "attention": "scaled", "options": {"form": "alpha"}, "attention_layers": [0]}
        paths.append(write_course(tmp_path / f"first-{seed}", [0.1] * 50, **more))
    words = {verdict.model: verdict.word for verdict in judged(*paths)}
    assert words == {"scaled, alpha": VerdictWord.SUPPORTED, "scaled, alpha, layers 0": VerdictWord.REFUTED}
    with pytest.raises(UsageError, match="repeats"):
        judged(*paths, paths[0])


def test_runs_of_another_recipe_are_not_compared(tmp_path):
    assert judged(*courses(tmp_path, (0.02, 0.02), depth=3)) == ()


def test_an_interval_is_wider_for_two_variants_than_for_one(tmp_path):
    paths = courses(tmp_path, (0.01, 0.02, 0.03))
    (alone,) = judged(*paths)
    for seed in range(3):
        accuracies = [0.5] * 50
        paths.append(
            write_course(
                tmp_path / f"exact-{seed}", accuracies, seed=seed, attention="scaled", options={"form": "exact"}
            )
        )
    first, _ = judged(*paths)
    assert alone.reason != first.reason
