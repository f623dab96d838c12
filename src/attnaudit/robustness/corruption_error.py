"""The mean corruption error of Hendrycks & Dietterich (2019)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from statistics import fmean

from attnaudit.errors import UsageError

#: Mean top-1 error of AlexNet over the five severities of ImageNet-C, by corruption: the denominators of mCE
#: (Hendrycks & Dietterich 2019; numbers from their repository hendrycks/robustness).
ALEXNET_ERRORS = {
    "gaussian_noise": 0.886428,
    "shot_noise": 0.894468,
    "impulse_noise": 0.922640,
    "defocus_blur": 0.819880,
    "glass_blur": 0.826268,
    "motion_blur": 0.785948,
    "zoom_blur": 0.798360,
    "snow": 0.866816,
    "frost": 0.826572,
    "fog": 0.819324,
    "brightness": 0.564592,
    "contrast": 0.853204,
    "elastic_transform": 0.646056,
    "pixelate": 0.717840,
    "jpeg_compression": 0.606500,
}


def mean_corruption_error(errors: Mapping[str, Sequence[float]], baseline: Mapping[str, Sequence[float]]) -> float:
    """The mean over corruptions c of CE_c = Σ_s E(s, c) / Σ_s E_base(s, c); 1 is as good as the baseline.

    Hendrycks & Dietterich (2019) call it mCE; s is the severity and E the error.

    Args:
        errors: errors at all severities, by corruption.
        baseline: errors of the baseline; for AlexNet one number, its mean over severities, is enough. If it makes no
            error under a corruption, the result is NaN.
    """
    if missing := [name for name in errors if name not in baseline]:
        raise UsageError(f"The baseline has no error for {', '.join(missing)}.")
    divisors = {name: fmean(baseline[name]) for name in errors}
    if not all(divisors.values()):
        return nan
    return fmean(fmean(own) / divisors[name] for name, own in errors.items())
