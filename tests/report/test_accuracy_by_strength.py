"""Accuracy against strength over seeds, by hand."""

import re

import numpy as np
import pytest
from scipy import stats

from attnaudit.records.evaluated_networks import open_evaluations
from attnaudit.report.accuracy_by_strength import strength_figure, strength_records
from tests.claims.evaluations import EPSILONS, RPC, SYMMETRIC, network, write_evaluation


def harder(severity):
    """Networks of two attentions whose accuracies fall by 1 % with every severity."""
    found = []
    for label, card, conditions, masked in (
        network(name, own, seed, pgd=-0.1) for name, own in (("sym", SYMMETRIC), ("rpc4", RPC)) for seed in range(3)
    ):
        fallen = [(*c[:4], c[4] - severity * c[2] * (c[0] == "corruption")) for c in conditions]
        found.append((label, card, fallen, masked))
    return found


def test_points_are_means_over_seeds_from_clean_on(tmp_path):
    records = strength_records(open_evaluations([write_evaluation(tmp_path / "run", harder(0.01))]))
    corrupted = [record for record in records if (record.recipe, record.kind) == ("sym", "corruption")]
    assert [record.strength for record in corrupted] == [0, 1, 5]
    assert [record.accuracy for record in corrupted] == [pytest.approx(value) for value in (0.81, 0.60, 0.56)]
    reach = stats.t.ppf(0.975, 2) * np.std([0.80, 0.81, 0.82], ddof=1) / 3**0.5
    assert {record.seeds for record in corrupted} == {3}
    assert corrupted[0].low == pytest.approx(0.81 - reach)
    assert corrupted[0].high == pytest.approx(0.81 + reach)


def test_an_attack_is_the_one_that_leaves_least(tmp_path):
    records = strength_records(open_evaluations([write_evaluation(tmp_path / "run", harder(0))]))
    attacked = [record for record in records if (record.recipe, record.kind) == ("rpc4", "attack")]
    assert [record.strength for record in attacked] == [0, *EPSILONS]
    assert [record.accuracy for record in attacked] == [pytest.approx(value) for value in (0.81, 0.56, 0.38, -0.02)]


def test_accuracies_that_happen_to_be_equal_are_known_to_one_image(tmp_path):
    networks = [network("sym", SYMMETRIC, seed, corrupted=-0.01 * seed) for seed in range(2)]
    records = strength_records(open_evaluations([write_evaluation(tmp_path / "run", networks, images=50)]))
    (equal,) = (record for record in records if (record.kind, record.strength) == ("corruption", 5))
    assert equal.high - equal.low == pytest.approx(2 * stats.t.ppf(0.975, 1) / (12**0.5 * 50 * 2**0.5))


def test_a_budget_of_nothing_is_the_clean_image_once(tmp_path):
    networks = [
        (label, card, [(k, n, 0.0 if s == EPSILONS[0] else s, *more) for k, n, s, *more in conditions], masked)
        for label, card, conditions, masked in harder(0)
    ]
    records = strength_records(open_evaluations([write_evaluation(tmp_path / "run", networks)]))
    attacked = [record for record in records if (record.recipe, record.kind) == ("sym", "attack")]
    assert [record.strength for record in attacked] == [0, *EPSILONS[1:]]


def test_one_seed_has_no_interval_and_what_was_not_run_no_record(tmp_path):
    path = write_evaluation(tmp_path / "run", [network("sym", SYMMETRIC, 0)], kinds=("clean", "attack"))
    records = strength_records(open_evaluations([path]))
    assert {record.kind for record in records} == {"attack"}
    assert {(record.low, record.high) for record in records} == {(None, None)}


def test_networks_without_autoattack_are_hollow_where_others_have_it(tmp_path):
    pytest.importorskip("matplotlib")
    networks = [network(name, own, seed) for name, own in (("sym", SYMMETRIC), ("rpc4", RPC)) for seed in range(2)]
    for shown, weaker in enumerate((networks, networks[:2], [])):  # AutoAttack on none, on one of two, on all
        for _, _, conditions, _ in networks[2 * (shown == 1) : 4 * shown]:
            conditions[:] = [own for own in conditions if own[1] != "autoattack"]
            conditions.append(("attack", "autoattack", EPSILONS[0], "max", 0.3))
        records = strength_records(open_evaluations([write_evaluation(tmp_path / f"run{shown}", networks)]))
        attacked = [record for record in records if (record.kind, record.strength) == ("attack", EPSILONS[0])]
        assert [record.recipe for record in attacked if not record.autoattack] == list(
            dict.fromkeys(label[:-2] for label, *_ in weaker)
        )
        strength_figure(records, [tmp_path / "figure.svg"])
        figure = (tmp_path / "figure.svg").read_text()
        assert ("hollow: without AutoAttack" in figure) == (shown == 1)
        assert len(re.findall("<use[^>]*fill: #ffffff", figure)) == (shown == 1)  # none of them in the legend


def test_the_figure_names_every_recipe_once_and_every_strength_in_its_panel(tmp_path):
    pytest.importorskip("matplotlib")
    records = strength_records(open_evaluations([write_evaluation(tmp_path / "run", harder(0.01))]))
    strength_figure(records, [tmp_path / "figure.svg"])
    text = (tmp_path / "figure.svg").read_text()
    for name in ("sym", "rpc4", "1", "5", *(f"{255 * own:.3g}/255" for own in EPSILONS)):
        assert text.count(f">{name}</text>") == 1, name
    assert text.count(">clean</text>") == 2
    assert text.count(">100,000 inputs</text>") == 2
