"""The table of attentions over seeds: means, intervals, and gains over the baseline, by hand."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from attnaudit.records.evaluated_networks import open_evaluations
from attnaudit.report.seed_gains import conditions_of, gain_records
from tests.claims.evaluations import CONTROLS, EPSILONS, RPC, SYMMETRIC, network, pairs, write_evaluation


def records(*paths):
    return {(record.recipe, record.condition): record for record in gain_records(open_evaluations(paths))}


def test_accuracies_are_means_over_seeds_with_students_interval(tmp_path):
    found = records(write_evaluation(tmp_path / "run", pairs((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))))
    clean = found["sym", "clean"]
    values = np.array([0.80, 0.81, 0.82])
    reach = stats.t.ppf(0.975, 2) * values.std(ddof=1) / 3**0.5
    assert (clean.seeds, clean.accuracy) == (3, pytest.approx(0.81))
    assert (clean.low, clean.high) == (pytest.approx(0.81 - reach), pytest.approx(0.81 + reach))
    assert found["sym", "corrupted"].accuracy == pytest.approx(0.61)


def test_what_cards_say_of_the_whole_test_half_is_shown_where_all_say_it(tmp_path):
    networks = pairs((0.0, 0.0), (0.0, 0.0))
    for place, (_, card, _, _) in enumerate(networks):
        card["facts"]["test_accuracy"] = 0.7 + 0.01 * place
    found = records(write_evaluation(tmp_path / "run", networks))
    assert found["sym", "clean, all test images"].accuracy == pytest.approx(0.71)
    assert found["rpc4", "clean, all test images"].gain == pytest.approx(0.01)
    del networks[0][1]["facts"]["test_accuracy"]
    assert ("sym", "clean, all test images") not in records(write_evaluation(tmp_path / "less", networks))


def test_gains_are_paired_by_seed_and_the_baseline_has_none(tmp_path):
    found = records(write_evaluation(tmp_path / "run", pairs((0.01, 0.02, 0.03), (0.05, 0.05, 0.05))))
    corrupted = found["rpc4", "corrupted"]
    reach = stats.t.ppf(0.975, 2) * 0.01 / 3**0.5
    assert corrupted.gain == pytest.approx(0.02)
    assert (corrupted.gain_low, corrupted.gain_high) == (pytest.approx(0.02 - reach), pytest.approx(0.02 + reach))
    assert found["rpc4", "attacked, ε = 2/255"].gain == pytest.approx(0.05)
    assert found["sym", "corrupted"].gain is None
    assert found["rpc4", "clean"].gain == pytest.approx(0)


def test_corrupted_is_the_mean_over_corruptions_and_severities(tmp_path):
    label, card, conditions, masked = network("sym", SYMMETRIC, 0)
    worse = [(*c[:4], c[4] - 0.2 * (c[1:3] == ("fog", 5.0))) for c in conditions]
    found = records(write_evaluation(tmp_path / "run", [(label, card, worse, masked)]))
    assert found["sym", "corrupted"].accuracy == pytest.approx(0.6 - 0.2 / 4)


def test_a_network_is_under_the_attack_that_leaves_it_least_at_every_budget(tmp_path):
    found = records(write_evaluation(tmp_path / "run", [network("sym", SYMMETRIC, 0, pgd=-0.2)]))
    left = [found["sym", f"attacked, ε = {n}/255"].accuracy for n in (1, 2, 4)]
    assert len(EPSILONS) == len(left)
    assert left == [pytest.approx(value) for value in (0.45, 0.27, -0.13)]
    assert found["sym", "clean"].low is None


def test_networks_under_autoattack_are_in_a_column_of_their_own(tmp_path):
    strongest = [network("rpc4", RPC, seed) for seed in range(2)]
    for _, _, conditions, _ in strongest:
        conditions.append(("attack", "autoattack", EPSILONS[0], "max", 0.3))
    networks = [*strongest, *(network("sym", SYMMETRIC, seed) for seed in range(2))]
    found = records(write_evaluation(tmp_path / "run", networks))
    plain, stronger = "attacked, ε = 1/255", "attacked, ε = 1/255, AutoAttack included"
    assert found["rpc4", stronger].gain is None
    assert found["rpc4", stronger].accuracy == pytest.approx(0.3)
    assert found["rpc4", plain].gain == pytest.approx(0)
    assert found["rpc4", plain].accuracy == pytest.approx(found["sym", plain].accuracy)
    assert ("sym", stronger) not in found
    names = conditions_of(list(found.values()))
    assert names.index(stronger) == names.index(plain) + 1


def test_gains_are_of_common_seeds_and_conditions_only(tmp_path):
    few = [network("rpc4", RPC, seed, corrupted=0.1) for seed in (1, 2)]
    networks = [*(network("sym", SYMMETRIC, seed) for seed in range(3)), *few]
    found = records(write_evaluation(tmp_path / "run", networks))
    assert found["rpc4", "corrupted"].gain == pytest.approx(0.1)
    assert found["rpc4", "corrupted"].seeds == 2
    alone = write_evaluation(tmp_path / "alone", [network("rpc4", RPC, 0)])
    assert records(alone)["rpc4", "corrupted"].gain is None


def test_networks_of_another_size_are_held_against_the_baseline_too(tmp_path):
    wide = [network("wide", {**SYMMETRIC, "width": 195}, seed, corrupted=0.02) for seed in range(2)]
    tempered = [network("tempered", CONTROLS["tempered"], seed) for seed in range(2)]
    networks = [*(network("sym", SYMMETRIC, seed) for seed in range(2)), *wide, *tempered]
    found = records(write_evaluation(tmp_path / "run", networks))
    assert found["wide", "corrupted"].gain == pytest.approx(0.02)
    assert found["tempered", "corrupted"].gain == pytest.approx(0)


def test_gains_are_as_coarse_as_the_images_that_both_saw(tmp_path):
    many = write_evaluation(tmp_path / "many", [network("rpc4", RPC, seed) for seed in range(3)], images=50_000)
    both = [network(name, own, seed) for name, own in (("sym", SYMMETRIC), ("rpc4", RPC)) for seed in range(2)]
    found = records(many, write_evaluation(tmp_path / "few", both, images=50))["rpc4", "corrupted"]
    assert (found.images, found.seeds, found.gain_seeds) == (50, 2, 2)  # accuracy and gain are of the same images
    assert found.gain_high - found.gain_low == pytest.approx(2 * stats.t.ppf(0.975, 1) / (6**0.5 * 50 * 2**0.5))


def test_accuracy_and_gain_are_means_over_the_same_corruptions(tmp_path):
    """RPC-Attention was tried under a third one, too, where it keeps little: that is no part of its column."""
    networks = pairs((0.02, 0.03), (0.0, 0.0))
    for label, _, conditions, _ in networks:
        if label.startswith("rpc4"):
            conditions.append(("corruption", "frost", 5.0, None, 0.1))
    found = records(write_evaluation(tmp_path / "run", networks))
    rpc, sym = found["rpc4", "corrupted"], found["sym", "corrupted"]
    assert rpc.gain == pytest.approx(0.025)
    assert rpc.accuracy - rpc.gain == pytest.approx(sym.accuracy)


def test_accuracies_that_happen_to_be_equal_are_known_to_one_image(tmp_path):
    """Uniform within an image: a standard deviation of 1/√12 images."""
    both = [network("sym", SYMMETRIC, seed, corrupted=-0.01 * seed) for seed in range(2)]
    found = records(write_evaluation(tmp_path / "run", both, images=50))["sym", "corrupted"]
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.975, 1) / (12**0.5 * 50 * 2**0.5))


def test_budgets_that_are_nearly_equal_are_two_conditions(tmp_path):
    label, card, conditions, masked = network("sym", SYMMETRIC, 0)
    near = [(*c[:2], 2.25 / 255 if c[2] == 4 / 255 else c[2], *c[3:]) for c in conditions]
    found = records(write_evaluation(tmp_path / "run", [(label, card, near, masked)]))
    assert {("sym", f"attacked, ε = {n}/255") for n in (1, 2, 2.25)} <= set(found)


def test_the_baseline_is_that_of_most_attentions_whatever_comes_first(tmp_path):
    wide = [network("wide", {**SYMMETRIC, "width": 195}, seed, corrupted=0.1) for seed in range(2)]
    others = [network(name, own, seed) for name, own in (("sym", SYMMETRIC), ("rpc4", RPC)) for seed in range(2)]
    found = records(write_evaluation(tmp_path / "run", [*wide, *others]))
    assert found["rpc4", "corrupted"].gain == pytest.approx(0)


def test_recipes_of_one_name_are_told_apart_by_what_differs(tmp_path):
    twice = [network("sym", {**SYMMETRIC, "width": width}, 0) for width in (192, 195)]
    twice = [(f"{label}-{place}", *rest) for place, (label, *rest) in enumerate(twice)]
    names = {name for name, _ in records(write_evaluation(tmp_path / "run", twice))}
    assert names == {"sym (width 192)", "sym (width 195)"}


RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize(
    ("evaluations", "quantity", "whole"),
    [
        (sorted((RESULTS / "segmentation" / "evaluations").iterdir()), "mIoU", set()),
        ([RESULTS / "sst2" / "evaluation"], "accuracy", {"clean, all test sentences"}),
        (sorted((RESULTS / "robustness" / "fan" / "evaluations").iterdir()), "accuracy", {"clean, all test images"}),
    ],
)
def test_the_table_says_what_is_counted_of_networks_that_segment_read_or_classify(evaluations, quantity, whole):
    found = records(*evaluations)
    assert {record.quantity for record in found.values()} == {quantity}
    assert {condition for _, condition in found if "all test" in condition} == whole


def test_the_whole_test_half_is_not_as_coarse_as_the_images_of_an_evaluation(tmp_path):
    networks = pairs((0.0, 0.0), (0.0, 0.0))
    for (_, card, _, _), accuracy in zip(networks, (0.7, 0.7001, 0.7, 0.7003), strict=True):
        card["facts"]["test_accuracy"] = accuracy
    found = records(write_evaluation(tmp_path / "run", networks, images=50))["rpc4", "clean, all test images"]
    reach = stats.t.ppf(0.975, 1) * np.std([0.0001, 0.0003], ddof=1) / 2**0.5
    assert found.images is None
    assert (found.gain_low, found.gain_high) == (pytest.approx(0.0002 - reach), pytest.approx(0.0002 + reach))
