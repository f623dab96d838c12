"""How well masks are predicted: counts of pixels by class, and the three numbers that are made of them.

With n_ij pixels of class i that are said to be of class j, t_i = Σ_j n_ij and p_i = Σ_j n_ji (Long et al. 2015):

* pixel accuracy Σ_i n_ii / Σ_i t_i,
* mean accuracy, the mean over classes of n_ii / t_i,
* mIoU, the mean over classes of n_ii / (t_i + p_i - n_ii).

Pixels without a class are not counted, whatever is said of them. A class that no counted pixel has is missing from both
means: it has no accuracy, and an IoU of 0 for it would punish one wrong pixel as much as a class that is never found.
(Those pixels lower the IoU of the classes that they have.) `missing` says how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from numpy.typing import NDArray
from torch import Tensor

from attnaudit.statistics.intervals import Indices, Numbers, bootstrap

_RESAMPLES = 1_000


def confusion_matrices(
    predicted: Int64[Tensor, "pictures height width"], truth: UInt8[Tensor, "pictures height width"], classes: int
) -> Int64[Tensor, "pictures classes classes"]:
    """n_ij of every picture; pixels whose class in `truth` is none of 0 … classes - 1 are not counted."""
    labelled, own = truth < classes, truth.long()
    picture = torch.arange(len(truth), device=truth.device)[:, None, None]
    places = (picture * classes + own) * classes + predicted
    found = torch.bincount(places[labelled], minlength=len(truth) * classes**2)
    return found.view(len(truth), classes, classes)


@dataclass(frozen=True)
class ClassCounts:
    """n_ii, t_i and p_i of every picture: `(pictures, classes)` each. They are all that the numbers are made of."""

    right: NDArray[np.int64]
    true: NDArray[np.int64]
    predicted: NDArray[np.int64]

    @staticmethod
    def of(confusion: Int64[Tensor, "pictures classes classes"]) -> ClassCounts:
        """From confusion matrices."""
        parts = confusion.diagonal(dim1=1, dim2=2), confusion.sum(dim=2), confusion.sum(dim=1)
        return ClassCounts(*(part.cpu().numpy() for part in parts))

    @property
    def missing(self) -> int:
        """The number of classes that no counted pixel has."""
        return int((self.true.sum(axis=0) == 0).sum())

    def of_class(self, number: int) -> ClassCounts:
        """Those of one class: the mean over its classes is then the number of that class."""
        return ClassCounts(*(own[:, number : number + 1] for own in (self.right, self.true, self.predicted)))

    def interval(self, quantity: Callable[[ClassCounts], Numbers], seed: int) -> tuple[float, float] | None:
        """The 95 % interval of one of the numbers below, under resampling of pictures.

        A class that is missing from a resample is missing from its means. None if fewer than two pictures have any of
        the classes: resamples of one picture are all alike, and do not tell how far another one would be.
        """
        if np.count_nonzero(self.true.sum(axis=1)) < 2:
            return None

        def of_each(drawn: Indices) -> Numbers:
            return quantity(self._resampled(drawn))

        return bootstrap(of_each, [len(self.true)], seed, resamples=_RESAMPLES)

    def _resampled(self, drawn: Indices) -> ClassCounts:
        """The totals of each resample, as if it were one picture."""
        times = np.stack([np.bincount(row, minlength=len(self.true)) for row in drawn])
        return ClassCounts(times @ self.right, times @ self.true, times @ self.predicted)

    @cached_property
    def total(self) -> ClassCounts:
        """All pictures as if they were one."""
        return self._resampled(np.arange(len(self.true))[None])


def pixel_accuracy(counts: ClassCounts) -> Numbers:
    """Of each picture, the share of pixels that are right."""
    with np.errstate(invalid="ignore"):
        share: Numbers = counts.right.sum(axis=1) / counts.true.sum(axis=1)
    return share


def mean_accuracy(counts: ClassCounts) -> Numbers:
    """Of each picture, the mean over its classes of the share of pixels that are right."""
    return _mean_over_classes(counts, counts.true)


def mean_iou(counts: ClassCounts) -> Numbers:
    """Of each picture, the mean over its classes of intersection over union."""
    return _mean_over_classes(counts, counts.true + counts.predicted - counts.right)


def _mean_over_classes(counts: ClassCounts, whole: NDArray[np.int64]) -> Numbers:
    """The mean of right / whole over classes that occur; NaN for a picture without any."""
    occurs = counts.true > 0
    shares = np.divide(counts.right, whole, out=np.zeros(whole.shape), where=occurs)
    with np.errstate(invalid="ignore"):
        mean: Numbers = shares.sum(axis=1) / occurs.sum(axis=1)
    return mean
