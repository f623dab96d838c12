"""The mean corruption error against hand-computed and published cases."""

import math

import pytest

from attnaudit.errors import UsageError
from attnaudit.robustness.corruption_error import ALEXNET_ERRORS, mean_corruption_error
from attnaudit.robustness.corruptions import CORRUPTIONS


def test_mean_corruption_error_by_hand():
    errors = {"fog": [0.2, 0.4], "snow": [0.1, 0.3]}
    baseline = {"fog": [0.4, 0.8], "snow": [0.4, 0.4]}
    # fog 0.6 / 1.2 = 0.5, snow 0.4 / 0.8 = 0.5; with snow's errors doubled 0.5 and 1
    assert mean_corruption_error(errors, baseline) == pytest.approx(0.5)
    assert mean_corruption_error(errors | {"snow": [0.2, 0.6]}, baseline) == pytest.approx(0.75)


def test_alexnet_has_an_error_of_one_against_itself():
    own = {name: [error] * 5 for name, error in ALEXNET_ERRORS.items()}
    assert mean_corruption_error(own, {name: [error] for name, error in ALEXNET_ERRORS.items()}) == pytest.approx(1)


def test_a_resnet_50_has_the_corruption_errors_that_were_reported_for_it():
    # accuracy and CE in per cent of torchvision's ResNet-50 (76.13 % on clean images), a public evaluation log
    reported = {
        "brightness": (68.02, 56.64),
        "contrast": (39.06, 71.43),
        "defocus_blur": (38.75, 74.71),
        "elastic_transform": (45.25, 84.75),
        "fog": (45.83, 66.11),
        "frost": (38.14, 74.84),
        "gaussian_noise": (29.29, 79.77),
        "glass_blur": (26.79, 88.61),
        "impulse_noise": (23.81, 82.58),
    }
    alexnet = {name: [error] for name, error in ALEXNET_ERRORS.items()}
    for name, (accuracy, expected) in reported.items():
        assert 100 * mean_corruption_error({name: [1 - accuracy / 100]}, alexnet) == pytest.approx(expected, abs=0.01)


def test_a_corruption_the_baseline_lacks_is_named():
    with pytest.raises(UsageError, match="no error for snow"):
        mean_corruption_error({"snow": [0.1]}, {"fog": [0.1]})


def test_a_baseline_without_errors_gives_no_number():
    assert math.isnan(mean_corruption_error({"fog": [0.1], "snow": [0.1]}, {"fog": [0.0], "snow": [0.2]}))


def test_alexnets_constants_are_those_of_all_corruptions():
    assert tuple(ALEXNET_ERRORS) == CORRUPTIONS
    # the spec of the study's evaluation names two of them: Gaussian noise .886, brightness .565
    assert (round(ALEXNET_ERRORS["gaussian_noise"], 3), round(ALEXNET_ERRORS["brightness"], 3)) == (0.886, 0.565)
