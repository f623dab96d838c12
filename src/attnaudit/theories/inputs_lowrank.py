"""Values as a linear map of the layer's inputs: true by construction, and therefore the upper baseline."""

from __future__ import annotations

from dataclasses import replace

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.theories.fitting import FittedTheory, by_row
from attnaudit.theories.linear_fit import LinearFit
from attnaudit.theories.planting import weights_of_heads
from attnaudit.theories.regression import Features

NO_INPUTS = "the inputs of this layer are not known"


def inputs_by_row(heads: Heads) -> Features | None:
    """What the layer made its values from, the same for all heads of an input."""
    return None if heads.source is None else heads.source.double()[:, None]


class InputsLowRank(FittedTheory):
    """V = XW + b: what a value projection is, so that nothing linear explains more.

    It is no rival: it says how much a fit to so many inputs can explain, and how many dimensions the values of a head
    really have. That is the least rank r of W that explains 95 % of their variance on held-out inputs (reduced-rank
    regression: W times the r leading principal axes of XW). Values that are no linear map of what was captured as the
    layer's input refute it, and with it the capture.
    """

    name = "inputs-lowrank"
    text = "a linear map of the layer's inputs: true by construction, an upper baseline"
    shown = ("rank_needed",)
    nulls = ("rotated",)
    context = ("random_projection",)
    baseline = True

    def fitting(self) -> _RankedFit:
        """Least squares of values on inputs."""
        return _RankedFit(inputs_by_row, NO_INPUTS)

    def planted(self, heads: Heads, seed: int) -> Heads | None:
        """V = XW* with W* ~ N(0, 1); outputs are not looked at, and stay."""
        inputs = inputs_by_row(heads)
        if inputs is None:
            return None
        weights = weights_of_heads(heads, (inputs.shape[-1], heads.value.shape[-1]), f"{seed}/{self.name}")
        return replace(heads, value=(inputs @ by_row(weights, heads)).flatten(0, 1))


class _RankedFit(LinearFit):
    """Predicts the axes of the map beside its values, the largest first."""

    def predict(self, heads: Heads) -> Prediction:
        found = super().predict(heads)
        if self.map is None or found.baseline is None:
            return found
        return replace(found, axes=self.map.principal_axes().repeat(len(heads) // len(self.map.weights), 1, 1))
