"""Which seeds, conditions and evaluations networks are compared by, seen from a claim."""

import pytest

from attnaudit.errors import UsageError
from attnaudit.protocol import Protocol
from attnaudit.records.verdict import Finding, VerdictWord
from tests.claims.evaluations import (
    GAIN,
    LOSS,
    NONE,
    ROBUST,
    SYMMETRIC,
    judged,
    network,
    only,
    pairs,
    write_evaluation,
)


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


@pytest.mark.parametrize("other", ["earlier by name", "later by name"])
def test_a_corruption_from_two_sources_counts_once(tmp_path, other):
    """The other source, where RPC-Attention falls behind, has one of the two corruptions in two seeds of three."""
    first = write_evaluation(tmp_path / "first", pairs(GAIN, GAIN), data="same")
    fog = only(pairs((-0.5, -0.5), (0.0, 0.0)), lambda c: c[0] == "clean" or c[1] == "fog")
    again = write_evaluation(tmp_path / "again", fog, data="same", source=other, kinds=("clean", "corruption"))
    (verdict,) = judged(ROBUST, first, again)
    assert "2 corruptions: +5.00 [" in verdict.reason
    assert verdict.word is VerdictWord.SUPPORTED


def test_of_evaluations_on_other_images_the_one_that_counts_is_named(tmp_path):
    few = write_evaluation(tmp_path / "the-fewer-images", pairs(NONE, NONE), images=10_000)
    many = write_evaluation(tmp_path / "the-more-images", pairs(GAIN, GAIN), images=20_000, data="f00dcafe01")
    (verdict,) = judged(ROBUST, few, many)
    assert verdict.word is VerdictWord.SUPPORTED
    assert verdict.reason.count("on 3 seeds (20,000 inputs; 1 other evaluation not counted)") == 2
    (alone,) = judged(ROBUST, many)
    assert "not counted" not in alone.reason


def test_evaluations_that_decide_together_are_both_counted(tmp_path):
    one, other = (write_evaluation(tmp_path / name, pairs(gain, gain)) for name, gain in (("a", GAIN), ("b", LOSS)))
    (verdict,) = judged(ROBUST, one, other)
    assert verdict.words == "undecided (measures disagree)"
    assert "not counted" not in verdict.reason


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
