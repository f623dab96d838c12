"""A fit of values by a linear map of something that a head has."""

from __future__ import annotations

from collections.abc import Callable

import torch

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.theories.base import no_prediction
from attnaudit.theories.fitting import by_row
from attnaudit.theories.regression import Features, LinearMap, RegressionSums

TOO_FEW = "the other half of the inputs has no more tokens than a fit has parameters"


class LinearFit:
    """Values from features by least squares; `without` says why heads have no features, where these are None."""

    def __init__(self, features: Callable[[Heads], Features | None], without: str = "") -> None:
        self._features, self._without = features, without
        self._sums = RegressionSums()
        self.map: LinearMap | None = None

    def add(self, heads: Heads) -> None:
        """Take some inputs into account."""
        features = self._features(heads)
        if features is not None:
            self._sums.add(features, by_row(heads.value, heads))

    def finish(self) -> LinearFit:
        """Solve."""
        self.map = self._sums.solve()
        return self

    def predict(self, heads: Heads) -> Prediction:
        """The values of these features; variance is counted from the mean of the inputs of the fit."""
        features = self._features(heads)
        if features is None or self.map is None:
            return no_prediction(heads, self._without if features is None else TOO_FEW)
        values = self.map(features).flatten(0, 1)
        baseline = self.map.y_mean.repeat(len(features), 1, 1)
        return Prediction(values, torch.zeros_like(values[:, 0, 0]), (None,) * len(heads), baseline=baseline)
