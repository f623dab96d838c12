"""RPC-Attention that segments better on clean and corrupted pictures, on one of the two, or not at all."""

from dataclasses import replace

import pytest

from attnaudit.claims.registry import CLAIMS
from attnaudit.records.evaluation import EvaluationSummary, Quantity
from attnaudit.records.json_file import read, write
from attnaudit.records.verdict import Finding, VerdictWord
from tests.claims.evaluations import BECAUSE, GAIN, LOSS, NONE, ROBUST, RPC, SYMMETRIC, interval, judged, network
from tests.claims.evaluations import write_evaluation as write_classifiers

SEGMENTS = CLAIMS["rpc-segments-better"]


def pairs(clean, corrupted):
    """Symmetric networks, and RPC-Attention ahead of them by so much, seed by seed."""
    found = []
    for seed, (on_clean, under_corruption) in enumerate(zip(clean, corrupted, strict=True)):
        found.append(network("sym", SYMMETRIC | {"decoder": "linear"}, seed))
        label, card, conditions, masked = network("rpc4", RPC | {"decoder": "linear"}, seed, corrupted=under_corruption)
        moved = [(kind, *how, value + on_clean * (kind == "clean")) for kind, *how, value in conditions]
        found.append((label, card, moved, masked))
    return found


def write_evaluation(path, networks, kinds=("clean", "corruption"), missing=0):
    """As of classifiers, but accuracies are mIoU, and mean accuracies beside them say something else.

    Of the ten classes so many are missing from the masks.
    """
    write_classifiers(path, networks, kinds=kinds)
    summary = read(EvaluationSummary, path / "summary.json", "a summary")
    miou = [replace(entry, quantity=Quantity.MEAN_IOU, right=None, missing=missing) for entry in summary.accuracies]
    beside = (Quantity.MEAN_ACCURACY, Quantity.PIXEL_ACCURACY)
    others = [replace(entry, quantity=quantity, accuracy=0.5) for entry in miou for quantity in beside]
    write(path / "summary.json", EvaluationSummary((*miou, *others), (), ()))
    return path


@pytest.mark.parametrize(
    ("clean", "corrupted", "word", "finding"),
    [
        (GAIN, GAIN, VerdictWord.SUPPORTED, Finding.SHOWN),
        (NONE, GAIN, VerdictWord.REFUTED, Finding.NO_GAIN),
        (GAIN, NONE, VerdictWord.REFUTED, Finding.NO_GAIN),
        (GAIN, LOSS, VerdictWord.REFUTED, Finding.LOSS),
    ],
)
def test_both_gains_are_needed(tmp_path, clean, corrupted, word, finding):
    (verdict,) = judged(SEGMENTS, write_evaluation(tmp_path / "run", pairs(clean, corrupted)))
    assert (verdict.word, verdict.finding, verdict.model) == (word, finding, "rpc4")


@pytest.mark.parametrize(
    ("missing", "words"),
    [(0, "refuted (no gain)"), (8, "refuted (no gain)"), (9, "undecided (not identifiable)")],
)
def test_chance_is_among_the_classes_that_masks_have(tmp_path, missing, words):
    """Networks with an mIoU of 80 and 60 % have learned something of two classes, and of one whatever they say."""
    (verdict,) = judged(SEGMENTS, write_evaluation(tmp_path / "run", pairs(NONE, NONE), missing=missing))
    assert verdict.words == words


@pytest.mark.parametrize("same", [0.0, 0.0001, -0.0001])
def test_a_miou_that_differs_by_the_same_in_every_seed_decides_nothing(tmp_path, same):
    """As of networks that have collapsed."""
    (verdict,) = judged(SEGMENTS, write_evaluation(tmp_path / "run", pairs((same,) * 3, (same,) * 3)))
    assert verdict.words == "undecided (too few inputs)"
    assert verdict.reason.count("on every seed, without a spread") == 2


def test_the_reason_has_both_gains_with_intervals_widened_for_two(tmp_path):
    (verdict,) = judged(SEGMENTS, write_evaluation(tmp_path / "run", pairs(GAIN, LOSS)))
    assert verdict.reason == (
        f"points of mIoU over sym: clean: {interval(5, 0.1, 2)} on 3 seeds; "
        f"2 corruptions: {interval(-5, 0.1, 2)} on 3 seeds"
    )


def test_without_corruptions_nothing_is_decided(tmp_path):
    (verdict,) = judged(SEGMENTS, write_evaluation(tmp_path / "run", pairs(GAIN, GAIN), kinds=("clean",)))
    assert verdict.word is VerdictWord.UNDECIDED
    assert "no corruption was run on both" in verdict.reason


def test_networks_that_segment_are_no_matter_of_the_claims_about_classifiers_and_the_other_way_round(tmp_path):
    segments = write_evaluation(tmp_path / "segments", pairs(GAIN, GAIN))
    assert judged(ROBUST, segments) == judged(BECAUSE, segments) == ()
    classifies = [network(name, own, seed) for seed in range(2) for name, own in (("sym", SYMMETRIC), ("rpc4", RPC))]
    assert judged(SEGMENTS, write_classifiers(tmp_path / "classifies", classifies)) == ()
