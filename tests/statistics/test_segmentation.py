"""Counts of pixels by class, and the numbers made of them: by hand, and against a count pixel by pixel."""

import numpy as np
import pytest
import torch

from attnaudit.statistics.segmentation import (
    ClassCounts,
    confusion_matrices,
    mean_accuracy,
    mean_iou,
    pixel_accuracy,
)

UNLABELLED = 255


def counts(truth, predicted, classes):
    return ClassCounts.of(confusion_matrices(torch.tensor(predicted), torch.tensor(truth, dtype=torch.uint8), classes))


#: Class 0: 3 pixels, 2 right; class 1: 2 pixels, 1 right; class 2: 1 pixel, right; class 3: none.
TRUTH = [[[0, 0, 0, 1], [1, 2, UNLABELLED, UNLABELLED]]]
SAID = [[[0, 0, 1, 1], [2, 2, 0, 3]]]


def test_a_picture_by_hand():
    found = counts(TRUTH, SAID, 4)
    assert (found.right.tolist(), found.true.tolist(), found.predicted.tolist()) == (
        [[2, 1, 1, 0]], [[3, 2, 1, 0]], [[2, 2, 2, 0]],
    )  # fmt: skip
    assert pixel_accuracy(found)[0] == pytest.approx(4 / 6)
    assert mean_accuracy(found)[0] == pytest.approx((2 / 3 + 1 / 2 + 1) / 3)
    assert mean_iou(found)[0] == pytest.approx((2 / 3 + 1 / 3 + 1 / 2) / 3)


def test_a_class_that_never_occurs_is_missing_and_counted_and_not_0():
    """Of class 3 nothing is said on a counted pixel; saying it on one lowers the class of that pixel alone."""
    assert counts(TRUTH, SAID, 4).missing == 1
    assert counts(TRUTH, SAID, 3 + 7).missing == 7
    wrong = [[[0, 0, 3, 1], [2, 2, 0, 3]]]
    assert mean_iou(counts(TRUTH, wrong, 4))[0] == pytest.approx((2 / 3 + 1 / 2 + 1 / 2) / 3)


def test_what_is_said_of_unlabelled_pixels_does_not_count():
    other = [[[0, 0, 1, 1], [2, 2, 1, 1]]]
    first, second = counts(TRUTH, SAID, 4), counts(TRUTH, other, 4)
    for name in ("right", "true", "predicted"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("number", [3, 4, 254])
def test_pixels_of_a_number_beyond_the_classes_do_not_count(number):
    """Said is the last class of three, which is where a number cut to the classes would be right."""
    found = counts([[[0, 1, number]]], [[[0, 1, 2]]], 3)
    assert (found.right.tolist(), found.true.tolist(), found.predicted.tolist()) == ([[1, 1, 0]],) * 3


def test_all_numbers_are_1_for_the_truth_and_0_for_what_is_never_right():
    truth = [[[0, 1], [2, 0]]]
    for quantity in (pixel_accuracy, mean_accuracy, mean_iou):
        assert quantity(counts(truth, truth, 3))[0] == 1
        assert quantity(counts(truth, [[[1, 2], [0, 1]]], 3))[0] == 0


def test_counts_are_those_of_a_loop_over_pixels():
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(0, 6, (3, 5, 7), generator=generator)
    truth[truth == 5] = UNLABELLED
    said = torch.randint(0, 5, (3, 5, 7), generator=generator)
    expected = torch.zeros(3, 5, 5, dtype=torch.int64)
    for place in np.ndindex(3, 5, 7):
        if truth[place] != UNLABELLED:
            expected[place[0], truth[place], said[place]] += 1
    found = confusion_matrices(said, truth.to(torch.uint8), 5)
    assert torch.equal(found, expected)
    whole = expected.sum(dim=0).double()
    iou = [whole[c, c] / (whole[c].sum() + whole[:, c].sum() - whole[c, c]) for c in range(5)]
    assert mean_iou(ClassCounts.of(found).total)[0] == pytest.approx(float(sum(iou)) / 5)


def test_the_number_of_a_class_by_hand():
    found = counts(TRUTH, SAID, 4)
    assert [mean_iou(found.of_class(number))[0] for number in range(3)] == pytest.approx([2 / 3, 1 / 3, 1 / 2])
    assert [mean_accuracy(found.of_class(number))[0] for number in range(3)] == pytest.approx([2 / 3, 1 / 2, 1])
    assert np.isnan(mean_iou(found.of_class(3))[0])


def test_pictures_add_up_before_means_are_taken():
    """A class is right in one picture and wrong in another: half of its pixels, and not the mean of two means."""
    both = counts([[[0, 0]], [[0, 1]]], [[[0, 0]], [[1, 1]]], 2)
    assert mean_accuracy(both.total)[0] == pytest.approx((2 / 3 + 1) / 2)
    assert mean_accuracy(both).tolist() == [1, 0.5]


def test_the_interval_is_over_pictures():
    right, wrong = [[0, 1]], [[1, 0]]
    same = counts([right] * 20, [right] * 20, 2)
    assert same.interval(mean_iou, 0) == (1, 1)
    half = counts([right] * 40, [right] * 20 + [wrong] * 20, 2)
    low, high = half.interval(pixel_accuracy, 0)
    assert low == pytest.approx(0.5 - 1.96 * 0.5 / 40**0.5, abs=0.03)
    assert high == pytest.approx(0.5 + 1.96 * 0.5 / 40**0.5, abs=0.03)
    assert half.interval(pixel_accuracy, 0) == (low, high)


def test_one_picture_or_a_class_in_one_picture_has_no_interval():
    one = counts(TRUTH, SAID, 4)
    assert [one.interval(quantity, 0) for quantity in (pixel_accuracy, mean_accuracy, mean_iou)] == [None] * 3
    truth = [[[0, 0]]] * 99
    found = counts([*truth, [[0, 1]]], [*truth, [[0, 0]]], 2)
    assert found.of_class(1).interval(mean_iou, 0) is None
    assert found.of_class(0).interval(mean_iou, 0) is not None
    twice = counts([*truth, [[0, 1]], [[0, 1]]], [*truth, [[0, 0]], [[0, 1]]], 2)
    assert twice.of_class(1).interval(mean_iou, 0) == (0, 1)


def test_without_a_labelled_pixel_there_is_no_number():
    none = counts([[[UNLABELLED]]], [[[0]]], 2)
    assert none.missing == 2
    assert all(np.isnan(quantity(none)[0]) for quantity in (pixel_accuracy, mean_accuracy, mean_iou))
