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


@pytest.mark.parametrize(
    ("sparse", "word"), [(0.0011, VerdictWord.REFUTED), (0.0009, VerdictWord.SUPPORTED), (None, VerdictWord.SUPPORTED)]
)
def test_places_of_a_sparse_part_decide_nothing_where_there_is_none(tmp_path, sparse, word):
    networks = with_controls(0.05, one=0.0, random=0.05, tempered=0.0)
    for _, card, _, _ in networks:
        card["facts"]["attention"] = {"blocks.0.attn": {"entropy": 3.0} if sparse is None else {"nonzero": sparse}}
    (verdict,) = judged(BECAUSE, write_evaluation(tmp_path / "run", networks))
    assert verdict.word is word
    assert ("decide nothing" in verdict.reason) == (word is VerdictWord.SUPPORTED)


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
