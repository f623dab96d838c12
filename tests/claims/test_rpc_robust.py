"""RPC-Attention against symmetric attention: words from made-up evaluations whose answer is known."""

import pytest
from scipy import stats

from attnaudit.errors import UsageError
from attnaudit.protocol import Protocol
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


def test_a_seed_that_lacks_a_corruption_is_left_out_of_the_mean_over_corruptions(tmp_path):
    first, *others = pairs(GAIN, GAIN)
    networks = [*only([first], lambda c: c[1] != "snow"), *others, network("sym", SYMMETRIC, 7)]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert "2 corruptions: +5.00 [" in verdict.reason
    assert verdict.reason.count("on 2 seeds") == 1  # not the seed that lacks a corruption
    assert verdict.reason.count("on 3 seeds") == 1


def test_a_seed_that_lacks_an_attack_is_compared_by_those_that_all_have(tmp_path):
    """What PGD alone takes does not count where seed 0 was not attacked by it; the seed does."""
    first, *others = pairs(GAIN, LOSS, pgd=-0.5)
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", [*only([first], lambda c: c[1] != "pgd"), *others]))
    assert "(the baseline keeps 43.0%): -5.00 [" in verdict.reason
    assert verdict.reason.count("on 3 seeds") == 2


def with_frost(networks, seeds):
    """The networks with one further corruption, in these seeds."""
    frost = [("corruption", "frost", 3.0, None, 0.6)]
    return [(label, card, c + frost * (card["facts"]["seed"] in seeds), m) for label, card, c, m in networks]


@pytest.mark.parametrize(("further", "compared"), [((0,), (2, 5)), ((0, 1, 2), (3, 3)), (range(5), (3, 5))])
def test_what_most_seeds_have_is_compared_whatever_further_corruption_a_seed_has(tmp_path, further, compared):
    networks = with_frost(pairs((*GAIN, *GAIN[:2]), (*GAIN, *GAIN[:2])), further)
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    corruptions, seeds = compared
    assert verdict.reason.startswith(f"points over sym: {corruptions} corruptions: ")
    assert f"on {seeds} seeds; attack" in verdict.reason


def test_where_no_two_seeds_have_the_same_corruptions_those_that_most_share_are_compared(tmp_path):
    first, others = pairs(GAIN, GAIN)[:2], pairs(GAIN, GAIN)[2:]
    networks = [*only(first, lambda c: c[1] != "snow"), *with_frost(others, (2,))]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert "1 corruption: +5.00 [" in verdict.reason
    assert verdict.reason.count("on 3 seeds") == 2


@pytest.mark.parametrize("kind", ["corruption", "attack"])
def test_seeds_without_any_condition_of_a_kind_do_not_take_it_from_the_others(tmp_path, kind):
    networks = pairs((*GAIN, *GAIN), (*GAIN, *GAIN))
    networks = [*networks[:4], *only(networks[4:], lambda c: c[0] != kind)]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert (verdict.reason.count("on 2 seeds"), verdict.reason.count("on 6 seeds")) == (1, 1)


def test_an_attack_of_strength_0_is_none(tmp_path):
    """At ε = 0 networks differ as they do clean, whatever the baseline keeps."""
    networks = [
        (label, card, [*conditions, ("attack", "pgd", 0.0, "max", 0.4 + 0.1 * label.startswith("rpc"))], masked)
        for label, card, conditions, masked in only(pairs(GAIN, GAIN), lambda c: c[0] != "attack" or c[2] == 4 / 255)
    ]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert (verdict.word, verdict.finding) == (VerdictWord.UNDECIDED, Finding.NOT_IDENTIFIABLE)
    assert "attack at ε = 4/255" in verdict.reason


def test_evaluations_of_two_protocols_are_refused_and_the_papers_is_named(tmp_path):
    exact = write_evaluation(tmp_path / "exact", pairs(NONE, NONE), images=10_000)
    paper = write_evaluation(tmp_path / "paper", pairs(GAIN, GAIN), images=20_000, protocol=Protocol.PAPER)
    with pytest.raises(UsageError, match="of the protocols exact and paper: judge those of one"):
        judged(ROBUST, exact, paper)
    (alone,) = judged(ROBUST, paper)
    assert alone.reason.count("on 3 seeds (protocol paper)") == 2


@pytest.mark.parametrize("first", ["gain", "loss"])
def test_evaluations_that_count_alike_and_say_different_things_decide_nothing_in_any_order(tmp_path, first):
    gain, loss = (write_evaluation(tmp_path / n, pairs(own, own)) for n, own in (("gain", GAIN), ("loss", LOSS)))
    (verdict,) = judged(ROBUST, *((gain, loss) if first == "gain" else (loss, gain)))
    assert verdict.words == "undecided (measures disagree)"
    assert "2 corruptions: +5.00 [" in verdict.reason
    assert ", but 2 corruptions: -5.00 [" in verdict.reason


def test_evaluations_that_count_alike_and_agree_give_one_reason_in_any_order(tmp_path):
    one, other = (write_evaluation(tmp_path / n, pairs(own, own)) for n, own in (("one", GAIN), ("more", (0.1, 0.11))))
    more = write_evaluation(tmp_path / "third", pairs((0.1, 0.11, 0.12), GAIN))
    assert judged(ROBUST, one, other, more) == judged(ROBUST, more, one, other)
    (verdict,) = judged(ROBUST, one, other, more)
    assert verdict.word is VerdictWord.SUPPORTED


def test_what_is_clean_is_said_of_its_own_images(tmp_path):
    decided = write_evaluation(tmp_path / "decided", pairs(GAIN, GAIN), images=500)
    clean = write_evaluation(tmp_path / "clean", pairs(GAIN, GAIN), images=5_000, kinds=("clean",))
    (verdict,) = judged(ROBUST, decided, clean)
    assert verdict.reason.endswith("clean +0.00 (5,000 inputs)")


def test_a_corruption_from_two_sources_counts_once(tmp_path):
    """The other source, where RPC-Attention falls behind, has one corruption of the four in one seed alone."""
    first = write_evaluation(tmp_path / "first", pairs(GAIN, GAIN), data="same")
    fog = only(pairs((-0.5,), (0.0,)), lambda c: c[0] == "clean" or c[1:3] == ("fog", 1.0))
    again = write_evaluation(tmp_path / "again", fog, data="same", source="other", kinds=("clean", "corruption"))
    (verdict,) = judged(ROBUST, first, again)
    assert "2 corruptions: +5.00 [" in verdict.reason
    assert verdict.word is VerdictWord.SUPPORTED


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


def test_one_recipe_with_several_settings_is_told_apart(tmp_path):
    networks = pairs(GAIN, GAIN)
    for seed, loss in enumerate(LOSS):
        _, *rest = network("rpc4", {**RPC, "attention_options": {"iterations": 5}}, seed, corrupted=loss)
        networks.append((f"runs/other-{seed}", *rest))
    words = {own.model: own.word for own in judged(ROBUST, write_evaluation(tmp_path / "run", networks))}
    assert words == {"rpc4 (rpc4-0)": VerdictWord.SUPPORTED, "rpc4 (runs/other-0)": VerdictWord.REFUTED}


@pytest.mark.parametrize(("baseline", "words"), [(0.20, "refuted (no gain)"), (0.18, "undecided (not identifiable)")])
def test_near_chance_a_gain_cannot_be_absent(tmp_path, baseline, words):
    """Of ten classes, a tenth of the way from chance to 1 is 19 %."""
    networks = [
        (label, card, [(*c[:4], c[4] - 0.61 + baseline if c[0] == "corruption" else c[4]) for c in conditions], masked)
        for label, card, conditions, masked in pairs(NONE, GAIN)
    ]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert verdict.words == words
    assert ("too near chance (10.0%) to tell" in verdict.reason) == (words != "refuted (no gain)")


def test_a_gain_over_networks_at_chance_is_one(tmp_path):
    networks = [
        (label, card, [(*c[:4], c[4] - 0.5 if c[0] == "corruption" else c[4]) for c in conditions], masked)
        for label, card, conditions, masked in pairs(GAIN, GAIN)
    ]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is VerdictWord.SUPPORTED


def test_of_evaluations_on_other_images_the_one_that_counts_is_named(tmp_path):
    few = write_evaluation(tmp_path / "the-fewer-images", pairs(NONE, NONE), images=10_000)
    many = write_evaluation(tmp_path / "the-more-images", pairs(GAIN, GAIN), images=20_000, data="f00dcafe01")
    (verdict,) = judged(ROBUST, few, many)
    assert verdict.word is VerdictWord.SUPPORTED
    assert verdict.reason.count("on 3 seeds (20,000 inputs; 1 other evaluation not counted)") == 2
    (alone,) = judged(ROBUST, many)
    assert "not counted" not in alone.reason


def by_autoattack(networks, left, seeds=(0, 1, 2)):
    """The networks with AutoAttack at 2/255 on top, which leaves so much by recipe, in these seeds."""
    return [
        (
            label,
            card,
            conditions
            + [
                ("attack", "autoattack", 2 / 255, "max", left[card["facts"]["recipe"]] + 0.01 * seed)
                for seed in (card["facts"]["seed"],)
                if seed in seeds
            ],
            masked,
        )
        for label, card, conditions, masked in networks
    ]


def test_autoattack_of_all_seeds_decides(tmp_path):
    """RPC-Attention is ahead under APGD, and level under AutoAttack, of which the baseline keeps less."""
    networks = by_autoattack(pairs(GAIN, GAIN), {"sym": 0.4, "rpc4": 0.4})
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert "attack at ε = 2/255, AutoAttack included (the baseline keeps 41.0%): +0.00 [" in verdict.reason
    assert verdict.words == "refuted (no gain)"


def test_autoattack_that_a_network_was_not_under_decides_nothing(tmp_path):
    networks = by_autoattack(pairs(GAIN, GAIN), {"sym": 0.4, "rpc4": 0.4}, seeds=(0, 1))
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert "attack at ε = 2/255 (the baseline keeps 43.0%): +5.00 [" in verdict.reason
    assert verdict.words == "supported"


@pytest.mark.parametrize("newer_first", [False, True])
def test_of_two_evaluations_of_as_many_seeds_the_one_with_autoattack_decides(tmp_path, newer_first):
    earlier = write_evaluation(tmp_path / "earlier", pairs(GAIN, GAIN))
    trained_again = by_autoattack(pairs(GAIN, GAIN), {"sym": 0.4, "rpc4": 0.4})
    newer = write_evaluation(tmp_path / "newer", trained_again, images=50_000)
    (verdict,) = judged(ROBUST, *((newer, earlier) if newer_first else (earlier, newer)))
    assert "AutoAttack included" in verdict.reason


def test_autoattack_on_fewer_seeds_does_not_replace_more(tmp_path):
    six = write_evaluation(tmp_path / "six", pairs(GAIN * 2, GAIN * 2))
    three = write_evaluation(tmp_path / "three", by_autoattack(pairs(GAIN, GAIN), {"sym": 0.4, "rpc4": 0.4}))
    (verdict,) = judged(ROBUST, six, three)
    assert "AutoAttack" not in verdict.reason


def test_attacks_of_another_norm_do_not_count(tmp_path):
    networks = [network(n, a, seed, norm="rms") for seed in range(3) for n, a in (("sym", SYMMETRIC), ("rpc4", RPC))]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert "no attack by gradients was run" in verdict.reason


def test_a_gain_under_attack_does_not_count_while_gradients_are_masked(tmp_path):
    checks = ("one step is not stronger than many",)
    (gain,) = judged(ROBUST, write_evaluation(tmp_path / "gain", pairs(GAIN, GAIN, masked=checks)))
    assert gain.word is VerdictWord.UNDECIDED
    assert "3 of its networks fail a check for gradient masking" in gain.reason
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
    + [(name, VerdictWord.UNDECIDED) for name in ("noise", "fgsm", "square", "transfer")],
)
def test_networks_are_compared_by_an_attack_along_their_own_gradients_and_by_no_other_alone(tmp_path, attack, word):
    networks = [
        (label, card, [(k, attack if k == "attack" else n, *more) for k, n, *more in conditions], masked)
        for label, card, conditions, masked in only(pairs(GAIN, LOSS), lambda c: c[1] != "pgd")
    ]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is word


def test_an_interval_is_wider_for_two_subjects_than_for_one(tmp_path):
    networks = pairs((0.01, 0.02, 0.03), GAIN)
    (alone,) = judged(ROBUST, write_evaluation(tmp_path / "one", networks))
    more = [network("rpc6", {**RPC, "attention_options": {"iterations": 6}}, seed) for seed in range(3)]
    first, _ = judged(ROBUST, write_evaluation(tmp_path / "two", [*networks, *more]))
    assert alone.reason != first.reason
