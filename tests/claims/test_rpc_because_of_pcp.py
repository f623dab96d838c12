"""Is the pursuit the reason? Words from made-up evaluations whose answer is known."""

import pytest

from attnaudit.records.verdict import Finding, VerdictWord
from tests.claims.evaluations import (
    BECAUSE,
    CONTROLS,
    ROBUST,
    RPC,
    SYMMETRIC,
    interval,
    judged,
    network,
    pairs,
    with_controls,
    write_evaluation,
)


def test_intervals_are_widened_for_corruption_and_attack_and_for_every_control(tmp_path):
    spread = (0.01, 0.02, 0.03)
    (robust,) = judged(ROBUST, write_evaluation(tmp_path / "robust", pairs(spread, spread)))
    assert robust.reason.count(interval(2.0, 1.0, 2)) == 2
    (because,) = judged(
        BECAUSE, write_evaluation(tmp_path / "because", with_controls(0.05, one=0, random=0, tempered=0))
    )
    assert because.reason.count(interval(5.01, 0.01, 8)) == 8


@pytest.mark.parametrize(
    ("controls", "word", "finding"),
    [
        ({"one": 0.0, "random": 0.0, "tempered": 0.0}, VerdictWord.SUPPORTED, Finding.SHOWN),
        ({"one": 0.05, "random": 0.0, "tempered": 0.0}, VerdictWord.REFUTED, Finding.NO_GAIN),
        ({"one": 0.0, "random": 0.06, "tempered": 0.0}, VerdictWord.REFUTED, Finding.LOSS),
        ({"one": 0.0, "random": 0.0, "tempered": 0.05}, VerdictWord.REFUTED, Finding.NO_GAIN),
        ({"one": 0.05, "random": 0.05, "tempered": 0.05}, VerdictWord.REFUTED, Finding.NO_GAIN),
    ],
)
def test_pursuit_is_the_reason_only_if_every_control_falls_behind(tmp_path, controls, word, finding):
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", with_controls(0.05, **controls)))
    assert (verdict.model, verdict.word, verdict.finding) == ("rpc4", word, finding)
    assert all(f"Points over {name}" in verdict.reason for name in controls)
    assert verdict.reason.count("the baseline keeps 43.0%") == 4  # which is the symmetric network, not the control


def test_without_a_gain_there_is_nothing_to_explain(tmp_path):
    networks = with_controls(0.0, one=-0.05, random=-0.05, tempered=-0.05)
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", networks))
    assert (verdict.word, verdict.finding) == (VerdictWord.UNDECIDED, Finding.NOT_IDENTIFIABLE)
    assert verdict.reason.startswith("No gain to explain is shown. Points over sym: ")


def test_only_what_is_gained_must_be_explained(tmp_path):
    """Ahead under corruption alone, and the controls under attack alone."""
    networks = []
    for seed in range(3):
        own = 0.0001 * seed
        networks.append(network("sym", SYMMETRIC, seed))
        networks.append(network("rpc4", RPC, seed, corrupted=0.05 + own))
        networks += [network(name, control, seed, attacked=0.05) for name, control in CONTROLS.items()]
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is VerdictWord.SUPPORTED


def with_sparse_part(networks, share):
    """The networks whose S has this share of its entries; None if their cards do not say it."""
    for _, card, _, _ in networks:
        first = card["facts"]["attention"]["blocks.0.attn"]
        first.pop("nonzero")
        first |= {} if share is None else {"nonzero": share}
    return networks


@pytest.mark.parametrize(
    ("sparse", "random", "words"),
    [
        (0.0011, 0.05, "refuted (no gain)"),
        (0.0009, 0.05, "supported"),
        (None, 0.05, "undecided (not measured)"),
        (None, 0.0, "supported"),
    ],
)
def test_places_of_a_sparse_part_refute_nothing_where_it_is_empty_or_may_be(tmp_path, sparse, random, words):
    networks = with_sparse_part(with_controls(0.05, one=0.0, random=random, tempered=0.0), sparse)
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", networks))
    assert verdict.words == words
    assert ("decide nothing" in verdict.reason) == (sparse == 0.0009)
    assert ("is not known" in verdict.reason) == (sparse is None)


def test_another_control_refutes_even_where_the_sparse_part_is_not_known(tmp_path):
    networks = with_sparse_part(with_controls(0.05, one=0.05, random=0.05, tempered=0.0), None)
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", networks))
    assert verdict.words == "refuted (no gain)"


@pytest.mark.parametrize(("entropy", "judges"), [(3.3, True), (3.5, True), (3.6, False), (None, False)])
def test_a_temperature_is_a_control_of_what_is_as_sharp(tmp_path, entropy, judges):
    """RPC-Attention has an entropy of 3.3 and symmetric attention one of 3.8: 3.6 is nearer to the second."""
    networks = with_controls(0.05, one=0.0, random=0.0, tempered=0.0)
    for label, card, _, _ in networks:
        if label.startswith("tempered"):
            card["facts"]["attention"] = {f"blocks.{layer}.attn": {"entropy": entropy or 0.0} for layer in range(6)}
            if entropy is None:
                del card["facts"]["attention"]["blocks.0.attn"]["entropy"]
    assert len(judged(BECAUSE, write_evaluation(tmp_path / "run", networks))) == judges


@pytest.mark.parametrize(("entropy", "judges"), [(3.25, True), (3.5, False)])
def test_a_temperature_halfway_between_is_no_control(tmp_path, entropy, judges):
    """The numbers are binary fractions, so that halves are exact."""
    entropies = {"sym": 4.0, "tempered": entropy}
    networks = with_controls(0.05, one=0.0, random=0.0, tempered=0.0)
    for _, card, _, _ in networks:
        for layer in card["facts"]["attention"].values():
            layer["entropy"] = entropies.get(card["facts"]["recipe"], 3.0)
    assert len(judged(BECAUSE, write_evaluation(tmp_path / "run", networks))) == judges


@pytest.mark.parametrize("order", [("near", "far"), ("far", "near")])
def test_of_several_temperatures_the_nearest_in_entropy_is_the_control(tmp_path, order):
    """RPC-Attention has an entropy of 3.3; the control further away gains as much, and would refute the claim."""
    known = {"near": {"entropy": 3.4}, "far": {"entropy": 3.1, "corrupted": 0.05, "attacked": 0.05}}
    networks = with_controls(0.05, one=0.0, random=0.0)
    networks += [network(name, CONTROLS["tempered"], seed, **known[name]) for name in order for seed in range(3)]
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", networks))
    assert verdict.words == "supported"


def test_every_form_has_a_temperature_of_its_own(tmp_path):
    """Six iterations are sharper, and only the control made for them gains as much."""
    networks = with_controls(0.05, one=0.0, random=0.0, tempered=0.0)
    for seed in range(3):
        ahead = {"corrupted": 0.05 + 0.0001 * seed, "attacked": 0.05 + 0.0001 * seed, "entropy": 1.0}
        networks.append(network("rpc6", {**RPC, "attention_options": {"iterations": 6}}, seed, **ahead))
        random = {"iterations": 6, "sparse": "random"}
        networks.append(network("random6", {**RPC, "attention_options": random}, seed))
        sharper = {**CONTROLS["tempered"], "attention_options": {"temperature": 0.1}}
        networks.append(network("tempered6", sharper, seed, **ahead))
    words = {own.model: own.words for own in judged(BECAUSE, write_evaluation(tmp_path / "run", networks))}
    assert words == {"rpc4": "supported", "rpc6": "refuted (no gain)"}


def test_a_gain_in_another_evaluation_is_not_explained_by_controls_that_were_not_in_it(tmp_path):
    """Alone, the first has no controls, and the second no gain to explain."""
    without = write_evaluation(tmp_path / "without", pairs((0.05, 0.051, 0.049, 0.05, 0.052), (0.0,) * 5))
    controlled = write_evaluation(tmp_path / "controlled", with_controls(0.0, one=0.0, random=0.0, tempered=0.0))
    assert judged(BECAUSE, without) == ()
    (both,), (alone,) = judged(BECAUSE, without, controlled), judged(BECAUSE, controlled)
    assert both.words == alone.words == "undecided (not identifiable)"
    assert both.reason.count("on 3 seeds") == 8


def test_a_gain_and_its_controls_are_of_the_same_epsilon(tmp_path):
    """At 2/255, where there is a gain, the controls are missing; at 1/255 there is none."""
    networks = with_controls(0.0, one=0.0, random=0.0, tempered=0.0)
    changed = []
    for label, card, conditions, masked in networks:
        if label.startswith("rpc4"):
            conditions = [(*c[:4], c[4] + 0.05 * (c[2] == 2 / 255)) for c in conditions]
        elif not label.startswith("sym"):
            conditions = [c for c in conditions if c[2] != 2 / 255]
        changed.append((label, card, conditions, masked))
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", changed))
    assert verdict.words == "undecided (not identifiable)"
    assert verdict.reason.count("attack at ε = 1/255") == 4


@pytest.mark.parametrize("missing", CONTROLS)
def test_without_one_of_its_controls_the_reason_is_not_judged(tmp_path, missing):
    present = {name: 0.0 for name in CONTROLS if name != missing}
    assert judged(BECAUSE, write_evaluation(tmp_path / "run", with_controls(0.05, **present))) == ()


@pytest.mark.parametrize("other", [{"attention_layers": [1]}, {"attention": "softmax"}, {"other_attention": "softmax"}])
def test_the_tempered_control_is_symmetric_attention_in_the_layers_of_the_pursuit(tmp_path, other):
    networks = with_controls(0.05, one=0.0, random=0.0)
    networks += [network("tempered", {**CONTROLS["tempered"], **other}, seed) for seed in range(3)]
    assert judged(BECAUSE, write_evaluation(tmp_path / "run", networks)) == ()


def test_rpc_attention_in_all_layers_has_its_tempered_control_in_all_layers(tmp_path):
    networks = with_controls(0.05, one=0.0, random=0.0, tempered=0.0)
    for _, card, _, _ in networks:
        card["architecture"] |= {"attention_layers": None, "other_attention": "softmax"}
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is VerdictWord.SUPPORTED
