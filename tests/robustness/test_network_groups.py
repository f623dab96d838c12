"""Which networks are compared with which."""

import json
from dataclasses import replace

import pytest

from attnaudit.attention.resolved import ResolvedAttention
from attnaudit.errors import UsageError
from attnaudit.records.architecture import Architecture
from attnaudit.records.evaluated_networks import open_evaluations
from attnaudit.records.verdict import VerdictWord
from attnaudit.robustness.network_groups import comparable_groups
from tests.claims.evaluations import (
    BECAUSE,
    CONTROLS,
    GAIN,
    ROBUST,
    RPC,
    SYMMETRIC,
    judged,
    network,
    pairs,
    with_controls,
    write_evaluation,
)
from tests.sealed import content_of, seal


@pytest.mark.parametrize(("fact", "value"), [("setting", ("one", "other")), ("epochs", (10, 20))])
def test_networks_that_were_trained_otherwise_are_not_compared(tmp_path, fact, value):
    networks = pairs(GAIN, GAIN)
    for place, (_, card, _, _) in enumerate(networks):
        card["facts"][fact] = value[place % 2]
    assert judged(ROBUST, write_evaluation(tmp_path / "run", networks)) == ()


@pytest.mark.parametrize(
    ("again", "first"),
    [(RPC, "rpc4-1"), ({**CONTROLS["tempered"], "attention_options": {"temperature": 1}}, "sym-1")],
)
def test_two_networks_of_one_attention_and_seed_are_refused(tmp_path, again, first):
    networks = [*pairs(GAIN, GAIN), network("again", again, 1)]
    with pytest.raises(UsageError, match=f"{first} and again-1 have the same attention and seed: judge one of them"):
        judged(ROBUST, write_evaluation(tmp_path / "run", networks))


def test_a_network_that_was_trained_again_is_refused_by_what_differs(tmp_path):
    first, again = (write_evaluation(tmp_path / name, pairs(GAIN, GAIN), data="same") for name in ("first", "again"))
    text = json.dumps(content_of(again / "run.json"))
    seal(again / "run.json", json.loads(text.replace('"fingerprint": "sym-1"', '"fingerprint": "others"')))
    with pytest.raises(UsageError, match="sym-1 and sym-1 with other weights have the same attention and seed"):
        judged(ROBUST, first, again)


def test_a_network_whose_card_says_no_seed_is_left_out(tmp_path):
    networks = [*pairs(GAIN, GAIN), network("other", RPC, 0)]
    del networks[-1][1]["facts"]["seed"]
    (verdict,) = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is VerdictWord.SUPPORTED


def test_networks_of_other_size_or_epochs_are_not_compared(tmp_path):
    rpc = [network("rpc4", RPC, seed, corrupted=0.1, attacked=0.1, epochs=41) for seed in range(3)]
    rpc += [network("rpc4", {**RPC, "width": 195}, seed + 3) for seed in range(3)]
    networks = [*(network("sym", SYMMETRIC, seed) for seed in range(6)), *rpc]
    assert judged(ROBUST, write_evaluation(tmp_path / "run", networks)) == ()


@pytest.mark.parametrize(
    ("attention", "subjects"),
    [
        (RPC, ["it"]),
        ({**RPC, "attention_layers": None, "other_attention": "softmax"}, ["it"]),
        (CONTROLS["one"], []),
        (CONTROLS["random"], []),
        ({**RPC, "other_attention": "softmax"}, []),
    ],
)
def test_subjects_are_networks_with_iterated_rpc_in_symmetric_attention(tmp_path, attention, subjects):
    networks = [network(n, a, seed) for seed in range(3) for n, a in (("sym", SYMMETRIC), ("it", attention))]
    verdicts = judged(ROBUST, write_evaluation(tmp_path / "run", networks))
    assert [verdict.model for verdict in verdicts] == subjects


def test_every_seed_may_have_its_own_temperature(tmp_path):
    networks = with_controls(0.05, one=0.0, random=0.0)
    for seed in range(3):
        tempered = {**CONTROLS["tempered"], "attention_options": {"temperature": 0.3 + seed}}
        networks.append(network("tempered", tempered, seed))
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is VerdictWord.SUPPORTED


def test_the_share_of_the_sparse_part_is_a_mean_over_layers_and_networks_unless_one_does_not_say(tmp_path):
    networks = pairs(GAIN, GAIN)
    cards = [card for label, card, _, _ in networks if label.startswith("rpc4")]
    for card, shares in zip(cards, ((0.1, 0.3), (0.2, 0.3), (0.0, 0.3)), strict=True):
        layers = {f"blocks.{number}.attn": {"nonzero": share} for number, share in enumerate(shares)}
        card["facts"]["attention"] = layers | {"blocks.5.attn": {"entropy": 3.0}}

    def share(path):
        ((_, rpc),) = comparable_groups(open_evaluations([write_evaluation(path, networks)]))
        return rpc.sparse_share

    assert share(tmp_path / "all") == pytest.approx(0.2)
    del cards[1]["facts"]["attention"]
    assert share(tmp_path / "less") is None


def test_defaults_and_presets_are_the_same_attention_as_the_options_they_stand_for():
    spelt = {"iterations": 4, "lam": 4.0, "preset": "paper", "threshold": "lam*mu", "mu_width": "model"}
    written = Architecture(depth=6, attention="rpc", attention_layers=(-6,), other_attention="symmetric")
    plain, long = (ResolvedAttention.of(replace(written, attention_options=options)) for options in ({}, spelt))
    assert plain == long
    assert plain == ResolvedAttention.of(replace(written, attention_layers=(0,)))
    assert ResolvedAttention.of(replace(written, other_attention="softmax")).other == "softmax"
    assert plain != ResolvedAttention.of(replace(written, attention_options={"form": "learned"}))
    everywhere = Architecture(depth=2, attention="symmetric")
    both = replace(everywhere, attention_layers=(1,), other_attention="symmetric")
    assert ResolvedAttention.of(everywhere) == ResolvedAttention.of(both)
    assert not ResolvedAttention.of(replace(both, attention_options={"temperature": 2.0})).is_plain_symmetric


def test_layers_come_in_their_order_and_not_in_that_of_letters(tmp_path):
    """blocks.10 stands between blocks.1 and blocks.2 in the alphabet."""
    label, card, conditions, masked = network("sym", {**SYMMETRIC, "depth": 12}, 0)
    card["facts"]["attention"] = {f"blocks.{layer}.attn": {"entropy": float(layer)} for layer in range(12)}
    path = write_evaluation(tmp_path / "run", [(label, card, conditions, masked)])
    ((group,),) = comparable_groups(open_evaluations([path]))
    assert [group.entropy([layer]) for layer in (1, 2, 9, 10, 11)] == [1, 2, 9, 10, 11]
