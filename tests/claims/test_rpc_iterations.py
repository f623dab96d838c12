"""RPC-Attention against itself with fewer iterations: words from made-up evaluations whose answer is known."""

import pytest

from attnaudit.claims.registry import CLAIMS
from tests.claims.evaluations import (
    GAIN,
    LOSS,
    NONE,
    RPC,
    SYMMETRIC,
    WIDE,
    interval,
    judged,
    network,
    write_evaluation,
)

ITERATIONS = CLAIMS["rpc-iterations"]
SEEDS = range(3)


def rpc(iterations, gains, attacked=None, recipe=None, **options):
    """RPC-Attention of so many iterations, ahead of symmetric attention by so much, seed by seed."""
    attention = {**RPC, "attention_options": {"iterations": iterations, **options}}
    under = zip(gains, attacked or gains, strict=True)
    return [
        network(recipe or f"rpc{iterations}", attention, seed, corrupted=corruption, attacked=attack)
        for seed, (corruption, attack) in enumerate(under)
    ]


def symmetric():
    return [network("sym", SYMMETRIC, seed) for seed in SEEDS]


@pytest.mark.parametrize(
    ("corrupted", "attacked", "words"),
    [
        (GAIN, GAIN, "supported"),
        (GAIN, LOSS, "refuted (a loss)"),
        (GAIN, NONE, "refuted (no gain)"),
        (NONE, NONE, "refuted (no gain)"),
        (GAIN, WIDE, "undecided (too wide)"),
        (GAIN[:1], GAIN[:1], "undecided (too few inputs)"),
    ],
)
def test_more_iterations_must_gain_under_corruption_and_under_attack(tmp_path, corrupted, attacked, words):
    fewer = rpc(4, (0.0,) * len(corrupted))
    path = write_evaluation(tmp_path / "run", [*symmetric(), *fewer, *rpc(6, corrupted, attacked)])
    (verdict,) = judged(ITERATIONS, path)
    assert (verdict.model, verdict.words) == ("rpc6", words)
    assert verdict.reason.startswith("6 over 4 (rpc4), points: 2 corruptions: ")


def test_a_gain_over_symmetric_attention_is_none_over_fewer_iterations(tmp_path):
    path = write_evaluation(tmp_path / "run", [*symmetric(), *rpc(4, (0.05, 0.05, 0.05)), *rpc(6, GAIN)])
    (verdict,) = judged(ITERATIONS, path)
    assert verdict.words == "refuted (no gain)"


def test_each_number_of_iterations_is_held_against_the_next_fewer_and_the_intervals_hold_jointly(tmp_path):
    networks = [*rpc(6, GAIN), *symmetric(), *rpc(1, (0.0,) * 3), *rpc(4, (0.0,) * 3)]
    found = judged(ITERATIONS, write_evaluation(tmp_path / "run", networks))
    assert {verdict.model: verdict.reason.split(",")[0] for verdict in found} == {
        "rpc4": "4 over 1 (rpc1)",
        "rpc6": "6 over 4 (rpc4)",
    }
    six = next(verdict for verdict in found if verdict.model == "rpc6")
    assert interval(5.0, 0.1, differences=4) in six.reason


@pytest.mark.parametrize(
    ("four", "six"),
    [({}, {"lam": 2.0}), ({}, {"preset": "admm"}), ({"sparse": "random"}, {"sparse": "random"})],
)
def test_other_rules_other_lambdas_and_random_controls_are_not_compared(tmp_path, four, six):
    networks = [*symmetric(), *rpc(4, (0.0,) * 3, **four), *rpc(6, GAIN, **six)]
    assert judged(ITERATIONS, write_evaluation(tmp_path / "run", networks)) == ()


def test_the_default_written_out_is_the_same_rule(tmp_path):
    networks = [*symmetric(), *rpc(4, (0.0,) * 3), *rpc(6, GAIN, lam=4.0, preset="code")]
    (verdict,) = judged(ITERATIONS, write_evaluation(tmp_path / "run", networks))
    assert verdict.words == "supported"


def test_other_layers_are_not_compared(tmp_path):
    everywhere = {"attention": "rpc", "attention_options": {"iterations": 6}}
    networks = [*rpc(4, (0.0,) * 3), *(network("all", everywhere, seed) for seed in SEEDS)]
    assert judged(ITERATIONS, write_evaluation(tmp_path / "run", networks)) == ()


def test_without_symmetric_networks_those_of_the_fewest_iterations_choose_the_budget(tmp_path):
    networks = [*rpc(4, (0.0,) * 3), *rpc(6, GAIN)]
    (verdict,) = judged(ITERATIONS, write_evaluation(tmp_path / "run", networks))
    assert "attack at ε = 2/255 (the baseline keeps 43.0%)" in verdict.reason


def test_symmetric_networks_choose_the_budget_where_there_are_some(tmp_path):
    """They keep half at ε = 2/255; RPC-Attention of four iterations would choose 4/255."""
    networks = [*symmetric(), *rpc(4, (0.4,) * 3), *rpc(6, (0.45, 0.451, 0.449))]
    (verdict,) = judged(ITERATIONS, write_evaluation(tmp_path / "run", networks))
    assert "attack at ε = 2/255" in verdict.reason
    (verdict,) = judged(ITERATIONS, write_evaluation(tmp_path / "alone", networks[len(SEEDS) :]))
    assert "attack at ε = 4/255" in verdict.reason
