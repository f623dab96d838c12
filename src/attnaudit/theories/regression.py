"""Least squares with one map for all inputs, from sums over them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.numerics.threads import torch_threads

#: Directions of the features whose variance is below this share of the largest are rounding, and get no weight.
_ROUNDING = 1e-11
Features = Float[Tensor, "rows #heads tokens width"]
Targets = Float[Tensor, "rows heads tokens columns"]


class RegressionSums:
    """The sums from which y = xW + b follows; heads may share their features."""

    def __init__(self) -> None:
        self.count = 0
        self._sums: tuple[Tensor, ...] | None = None

    def add(self, features: Features, targets: Targets) -> None:
        """Take some inputs into account."""
        self.count += features.shape[0] * features.shape[2]
        found = (
            features.sum(dim=(0, 2)),
            targets.sum(dim=(0, 2)),
            (features.mT @ features).sum(dim=0),
            (features.mT @ targets).sum(dim=0),
        )
        self._sums = found if self._sums is None else tuple(a + b for a, b in zip(self._sums, found, strict=True))

    def solve(self) -> LinearMap | None:
        """The map of least length among those of least squares; None with no more tokens than features.

        The sums are let go: of wide layers they take much more than the map.
        """
        sums, self._sums = self._sums, None
        if sums is None or self.count <= sums[0].shape[-1] + 1:
            return None
        x, y, xx, xy = sums
        x, y = (total[:, None] / self.count for total in (x, y))
        covariance = xx / self.count - x.mT @ x
        with torch_threads(1):
            sizes, axes = torch.linalg.eigh(covariance)
        kept = sizes > _ROUNDING * sizes[..., -1:]
        inverse = torch.where(kept, 1 / sizes.where(kept, 1.0), 0.0)
        weights = axes @ (inverse[..., None] * (axes.mT @ (xy / self.count - x.mT @ y)))
        return LinearMap(x, y, weights, weights.mT @ covariance @ weights)


@dataclass(frozen=True)
class LinearMap:
    """y = ȳ + (x - x̄)W for every head of a layer; x̄ and ȳ are means of the inputs it was fitted to.

    `explained` is the covariance of what it predicts there.
    """

    x_mean: Float[Tensor, "#heads 1 width"]
    y_mean: Float[Tensor, "heads 1 columns"]
    weights: Float[Tensor, "heads width columns"]
    explained: Float[Tensor, "heads columns columns"]

    def __call__(self, features: Features) -> Targets:
        """The targets of these features."""
        return self.y_mean + (features - self.x_mean) @ self.weights

    def principal_axes(self) -> Float[Tensor, "heads columns columns"]:
        """Of what it predicts, the largest first: with the first r of them, E, its best map of rank r is WEEᵀ."""
        with torch_threads(1):
            _, axes = torch.linalg.eigh(self.explained)
        found: Tensor = axes.flip(-1)
        return found
