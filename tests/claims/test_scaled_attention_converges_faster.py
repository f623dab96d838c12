"""Scaled against softmax attention: words from made-up trainings whose answer is known."""

import pytest
from scipy import stats

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


@pytest.mark.parametrize("gain", [0.01, -0.01, 0.0])
def test_equal_differences_are_not_certain(tmp_path, gain):
    """One image of a hundred in one of ten epochs, in every seed; in one of them in another epoch."""

    def course(seed, ahead):
        return [0.5 + (ahead if epoch == 3 * seed else 0.0) for epoch in range(10)]

    def written(name, **more):
        (tmp_path / name).mkdir()
        return [
            write_course(tmp_path / name / f"{own}-{seed}", course(seed, ahead), seed=seed, attention=own, **more)
            for seed in range(2)
            for own, ahead in (("softmax", 0.0), ("scaled", gain))
        ]

    (unknown,) = judged(*written("unknown"))
    assert unknown.words == "undecided (too few inputs)"
    assert "in each of 2 seeds, without a spread" in unknown.reason
    (known,) = judged(*written("known", examples=100))
    assert known.words == "undecided (too wide)"
    reach = 100 * stats.t.ppf(0.975, 1) / (6**0.5 * 100 * 2**0.5)
    assert f"[{10 * gain - reach:+.2f}, {10 * gain + reach:+.2f}]" in known.reason


@pytest.mark.parametrize(
    "baseline",
    [
        {"attention_layers": (0,), "other_attention": "symmetric"},
        {"options": {"temperature": 5.0}},
        {"options": {"qk_norm": True}},
    ],
)
def test_only_softmax_attention_in_all_layers_as_it_is_by_default_is_a_baseline(tmp_path, baseline):
    paths = [
        write_course(tmp_path / f"{attention}-{seed}", [0.5] * 50, seed=seed, attention=attention, **more)
        for seed in range(3)
        for attention, more in (("softmax", baseline), ("scaled", {}))
    ]
    assert judged(*paths) == ()


def test_scaled_attention_among_other_attention_than_softmax_is_not_held_against_softmax(tmp_path):
    """Nor joined with the seeds in which softmax attention is in the other layers."""
    paths = []
    for seed in range(4):
        others = {"attention_layers": (0,), "other_attention": "softmax" if seed < 2 else "symmetric"}
        paths.append(write_course(tmp_path / f"softmax-{seed}", [0.5] * 50, seed=seed))
        paths.append(
            write_course(tmp_path / f"{seed}", [0.52 + 0.001 * seed] * 50, seed=seed, attention="scaled", **others)
        )
    (verdict,) = judged(*paths)
    assert verdict.model == "scaled, alpha, layers 0"
    assert verdict.reason.endswith("2 seeds")


def test_defaults_spelt_out_are_the_same_variant(tmp_path):
    paths = courses(tmp_path, (0.02, 0.021, 0.02))
    for seed, more in ((3, {"attention_layers": (0, 1)}), (4, {"options": {"tokens": 257}}), (5, {})):
        paths.append(write_course(tmp_path / f"softmax-{seed}", [0.5] * 50, seed=seed))
        paths.append(write_course(tmp_path / f"{seed}", [0.52] * 50, seed=seed, attention="scaled", **more))
    (verdict,) = judged(*paths)
    assert (verdict.model, verdict.reason[-7:]) == ("scaled, alpha", "6 seeds")


def test_forms_that_are_mixed_are_a_variant_of_their_own(tmp_path):
    paths = courses(tmp_path, (0.02, 0.021))
    for seed in range(2):
        mixed = {"options": {"form": "exact"}, "attention_layers": (0,), "other_attention": "scaled"}
        paths.append(write_course(tmp_path / f"mixed-{seed}", [0.5] * 50, seed=seed, attention="scaled", **mixed))
    assert [own.model for own in judged(*paths)] == ["scaled, alpha", "scaled, exact, layers 0, scaled elsewhere"]


def test_variants_of_two_networks_are_told_apart(tmp_path):
    shallow, deep = courses(tmp_path / "shallow", (0.02, 0.021)), []
    for seed in range(2):
        for attention, accuracy in (("softmax", 0.5), ("scaled", 0.4 + 0.001 * seed)):
            path = tmp_path / f"deep-{attention}-{seed}"
            deep.append(write_course(path, [accuracy] * 50, seed=seed, attention=attention, depth=4))
    first, second = judged(*shallow, *deep)
    assert first.model.startswith("scaled, alpha (")
    assert second.model == f"scaled, alpha ({tmp_path / 'deep-scaled-0'})"


def test_without_a_common_seed_no_epoch_is_counted(tmp_path):
    paths = [write_course(tmp_path / "softmax", [0.5] * 12, seed=0)]
    paths.append(write_course(tmp_path / "scaled", [0.5] * 12, seed=1, attention="scaled"))
    (verdict,) = judged(*paths)
    assert verdict.reason == "no seed in common with softmax attention, but 2 seeds and 10 epochs are needed"


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
