"""RPC-Attention against symmetric attention: words from made-up evaluations whose answer is known."""

import pytest
from scipy import stats

from attnaudit.records.verdict import Finding, VerdictWord
from tests.claims.evaluations import (
    BELOW_A_POINT,
    BEYOND_A_POINT,
    GAIN,
    LOSS,
    NONE,
    ROBUST,
    RPC,
    SYMMETRIC,
    WIDE,
    judged,
    network,
    only,
    pairs,
    write_evaluation,
)


@pytest.mark.parametrize(
    ("corrupted", "attacked", "words"),
    [
        (GAIN, GAIN, "supported"),
        (GAIN, LOSS, "refuted (a loss)"),
        (LOSS, GAIN, "refuted (a loss)"),
        (GAIN, NONE, "refuted (no gain)"),
        (LOSS, LOSS, "refuted (a loss)"),
        (LOSS, NONE, "refuted (a loss)"),
        (NONE, NONE, "refuted (no gain)"),
        (NONE, WIDE, "refuted (no gain)"),
        (GAIN, WIDE, "undecided (too wide)"),
        (GAIN[:1], GAIN[:1], "undecided (too few inputs)"),
        (BELOW_A_POINT, BELOW_A_POINT, "refuted (no gain)"),
        (BEYOND_A_POINT, BEYOND_A_POINT, "undecided (too wide)"),
    ],
)
def test_robust_is_ahead_under_corruption_and_attack_by_more_than_seeds_differ(tmp_path, corrupted, attacked, words):
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", pairs(corrupted, attacked)))
    assert (verdict.model, verdict.words) == ("rpc4", words)


def test_seeds_are_paired(tmp_path):
    """Accuracies differ between seeds by a point, differences by a tenth of that."""
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", pairs((0.005, 0.006, 0.004), GAIN)))
    assert verdict.word is VerdictWord.SUPPORTED
    assert "2 corruptions: +0.50 [" in verdict.reason
    assert "clean +0.00" in verdict.reason


def test_the_budget_is_the_one_at_which_the_baseline_keeps_half_and_the_attack_the_strongest(tmp_path):
    path = write_evaluation(tmp_path / "run", pairs(GAIN, LOSS, pgd=0.5))  # a gain under PGD alone is none
    (verdict,) = judged(ROBUST, path)
    assert "attack at ε = 2/255 (the baseline keeps 43.0%): -5.00 [" in verdict.reason
    assert verdict.word is VerdictWord.REFUTED


@pytest.mark.parametrize("epsilon", [1 / 255, 4 / 255])
def test_where_the_baseline_keeps_too_little_or_too_much_an_attack_tells_nothing_apart(tmp_path, epsilon):
    networks = only(pairs(GAIN, GAIN), lambda c: c[0] != "attack" or c[2] == epsilon)
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert (verdict.word, verdict.finding) == (VerdictWord.UNDECIDED, Finding.NOT_IDENTIFIABLE)
    assert "tells nothing apart" in verdict.reason


@pytest.mark.parametrize(
    ("kinds", "missing"), [(("clean", "attack"), "no corruption"), (("clean", "corruption"), "no attack")]
)
def test_what_was_not_run_is_not_taken_for_granted(tmp_path, kinds, missing):
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", pairs(GAIN, GAIN), kinds=kinds))
    assert (verdict.word, verdict.finding) == (VerdictWord.UNDECIDED, Finding.NOT_MEASURED)
    assert missing in verdict.reason


def test_a_loss_refutes_whatever_else_was_not_run(tmp_path):
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", pairs(LOSS, LOSS), kinds=("clean", "corruption")))
    assert verdict.word is VerdictWord.REFUTED


def test_the_budget_is_chosen_among_those_at_which_the_baseline_keeps_enough_and_not_too_much(tmp_path):
    """Of 95 % clean, 62 % is nearer to half than 15 %, and too much."""
    kept = [("clean", "clean", 0.0, None, 0.95)]
    kept += [("attack", "pgd", number / 255, "max", left) for number, left in ((1, 0.62), (2, 0.15))]
    networks = []
    for label, card, conditions, masked in pairs(GAIN, GAIN):
        more = 0.05 * label.startswith("rpc") + card["facts"]["seed"] / 1000
        own = [c for c in conditions if c[0] == "corruption"] + [(*c[:4], c[4] + more) for c in kept]
        networks.append((label, card, own, masked))
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert "attack at ε = 2/255 (the baseline keeps 15.1%)" in verdict.reason


def test_the_budget_is_chosen_by_means_over_the_baseline_networks(tmp_path):
    """RPC-Attention gains at the second ε alone, which neither the best nor the worst seed would choose.

    The mean is 65 % clean, of which 32.5 % is half, and 44, 35 and 27 % under attack.
    """
    clean = (0.5, 0.5, 0.95)
    left = {1 / 255: (0.3, 0.3, 0.72), 2 / 255: (0.2, 0.2, 0.65), 4 / 255: (0.15, 0.15, 0.51)}
    networks = []
    for label, card, conditions, masked in pairs(GAIN, GAIN):
        seed, rpc = card["facts"]["seed"], label.startswith("rpc")
        own = [c for c in conditions if c[0] == "corruption"] + [("clean", "clean", 0.0, None, clean[seed])]
        for epsilon, by_seed in left.items():
            ahead = (GAIN if epsilon == 2 / 255 else LOSS)[seed] * rpc
            own.append(("attack", "pgd", epsilon, "max", by_seed[seed] + ahead))
        networks.append((label, card, own, masked))
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert verdict.words == "supported"


def test_one_recipe_with_several_settings_is_told_apart(tmp_path):
    networks = pairs(GAIN, GAIN)
    for seed, loss in enumerate(LOSS):
        _, *rest = network("rpc4", {**RPC, "attention_options": {"iterations": 5}}, seed, corrupted=loss)
        networks.append((f"runs/other-{seed}", *rest))
    words = {own.model: own.word for own in judged(ROBUST, write_evaluation(tmp_path / "run", networks))}
    assert words == {"rpc4 (rpc4-0)": VerdictWord.SUPPORTED, "rpc4 (runs/other-0)": VerdictWord.REFUTED}


@pytest.mark.parametrize(
    ("baseline", "gain", "words"),
    [
        (0.195, NONE, "refuted (no gain)"),
        (0.185, NONE, "undecided (not identifiable)"),
        (0.195, LOSS, "refuted (a loss)"),
    ],
)
def test_near_chance_a_gain_cannot_be_absent(tmp_path, baseline, gain, words):
    """Of ten classes, a tenth of the way from chance to 1 is 19 %; how far ours have come does not matter."""
    networks = [
        (label, card, [(*c[:4], c[4] - 0.61 + baseline if c[0] == "corruption" else c[4]) for c in conditions], masked)
        for label, card, conditions, masked in pairs(gain, GAIN)
    ]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert verdict.words == words
    assert ("too near chance (10.0%) to tell" in verdict.reason) == words.startswith("undecided")


def test_a_gain_over_networks_at_chance_is_one(tmp_path):
    networks = [
        (label, card, [(*c[:4], c[4] - 0.5 if c[0] == "corruption" else c[4]) for c in conditions], masked)
        for label, card, conditions, masked in pairs(GAIN, GAIN)
    ]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is VerdictWord.SUPPORTED


def test_attacks_of_another_norm_do_not_count(tmp_path):
    networks = [network(n, a, seed, norm="rms") for seed in range(3) for n, a in (("sym", SYMMETRIC), ("rpc4", RPC))]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert "no attack by gradients was run" in verdict.reason


def test_a_gain_under_attack_does_not_count_while_gradients_are_masked(tmp_path):
    checks = ("one step is not stronger than many",)
    (gain,) = judged(ROBUST, write_evaluation(tmp_path / "gain", pairs(GAIN, GAIN, masked=checks)))
    assert gain.word is VerdictWord.UNDECIDED
    assert "3 of its networks fail a check for gradient masking" in gain.reason
    networks = [(*own[:3], checks if own[0] == "rpc4-0" else ()) for own in pairs(GAIN, GAIN)]
    (one,) = judged(ROBUST, write_evaluation(tmp_path / "one", networks))
    assert "1 of its networks fails a check for gradient masking" in one.reason
    (loss,) = judged(ROBUST, write_evaluation(tmp_path / "loss", pairs(GAIN, LOSS, masked=checks)))
    assert loss.word is VerdictWord.REFUTED


def test_equal_gains_of_one_image_are_not_certain(tmp_path):
    """Two of ten images, in both seeds: no spread to see, and still a matter of an image, under both."""
    networks = pairs((0.2, 0.2), (0.2, 0.2))
    (many,) = judged(ROBUST, write_evaluation(tmp_path / "many", networks))
    assert many.word is VerdictWord.SUPPORTED
    (few,) = judged(ROBUST, write_evaluation(tmp_path / "few", networks, images=10))
    assert few.word is VerdictWord.UNDECIDED
    reach = 100 * stats.t.ppf(1 - 0.05 / 4, 1) / (6**0.5 * 10 * 2**0.5)
    assert few.reason.count(f"+20.00 [{20 - reach:+.2f}, {20 + reach:+.2f}] on 2 seeds") == 2


def test_a_gain_under_attack_does_not_count_where_gradients_were_not_checked(tmp_path):
    (gain,) = judged(ROBUST, write_evaluation(tmp_path / "gain", pairs(GAIN, GAIN), checked=False))
    assert gain.word is VerdictWord.UNDECIDED
    assert "3 of its networks were not checked for gradient masking" in gain.reason
    assert "fail a check" not in gain.reason


def test_a_lack_of_gain_under_attack_does_not_count_while_gradients_of_the_baseline_are_masked(tmp_path):
    """Of a baseline that only looks robust nothing can fall short; a gain over it is one all the more."""
    masked = ("one step is not stronger than many",)
    for attacked, word in (
        (LOSS, VerdictWord.UNDECIDED),
        (NONE, VerdictWord.UNDECIDED),
        (GAIN, VerdictWord.SUPPORTED),
    ):
        networks = [(*own[:3], masked if own[0].startswith("sym") else ()) for own in pairs(GAIN, attacked)]
        (verdict,) = judged(ROBUST, write_evaluation(tmp_path / f"{attacked[0]}", networks))
        assert verdict.word is word
        assert "3 of the networks it is held against fail a check for gradient masking" in verdict.reason
    (loss,) = judged(ROBUST, write_evaluation(tmp_path / "unchecked", pairs(GAIN, LOSS), checked=False))
    assert loss.word is VerdictWord.UNDECIDED


def test_none_under_one_kind_refutes_whatever_else_was_not_run(tmp_path):
    """As it does where the other kind is open."""
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", pairs(NONE, NONE), kinds=("clean", "corruption")))
    assert verdict.word is VerdictWord.REFUTED


def test_a_gain_too_small_to_be_shown_has_no_sign_of_a_loss(tmp_path):
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", pairs((-0.00001, -0.00002), NONE[:2])))
    assert "2 corruptions: +0.00 [" in verdict.reason


@pytest.mark.parametrize(
    ("attack", "word"),
    [(name, VerdictWord.REFUTED) for name in ("pgd", "apgd", "autoattack")]
    + [(name, VerdictWord.UNDECIDED) for name in ("noise", "fgsm", "square", "transfer", "cw")],
)
def test_networks_are_compared_by_an_attack_along_their_own_gradients_and_by_no_other_alone(tmp_path, attack, word):
    networks = [
        (label, card, [(k, attack if k == "attack" else n, *more) for k, n, *more in conditions], masked)
        for label, card, conditions, masked in only(pairs(GAIN, LOSS), lambda c: c[1] != "pgd")
    ]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is word


def test_the_strongest_attack_counts_even_if_it_follows_no_gradient(tmp_path):
    """RPC-Attention is ahead under APGD and behind under random squares, which leave less."""
    networks = [
        (label, card, [*conditions, ("attack", "square", 2 / 255, "max", 0.3 - 0.05 * label.startswith("rpc"))], masked)
        for label, card, conditions, masked in pairs(GAIN, GAIN)
    ]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert verdict.words == "refuted (a loss)"


def test_an_interval_is_wider_for_two_subjects_than_for_one(tmp_path):
    networks = pairs((0.01, 0.02, 0.03), GAIN)
    (alone,) = judged(ROBUST, write_evaluation(tmp_path / "one", networks))
    more = [network("rpc6", {**RPC, "attention_options": {"iterations": 6}}, seed) for seed in range(3)]
    first, _ = judged(ROBUST, write_evaluation(tmp_path / "two", [*networks, *more]))
    assert alone.reason != first.reason
