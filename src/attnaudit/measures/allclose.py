"""The study's elementwise test: is V equal to the prediction, number by number?"""

from __future__ import annotations

import torch

from attnaudit.kernel.gram import PerHead
from attnaudit.measures.guards import PREDICTED
from attnaudit.measures.measure import Measure
from attnaudit.measures.measure_input import MeasureInput

RELATIVE, ABSOLUTE = 1e-3, 1e-5  # the script's values; the paper prints them the other way round


def allclose(at: MeasureInput) -> PerHead:
    """1 where |V - V̇| ≤ 1e-5 + 1e-3·|V̇| for every entry, else 0.

    A theory that leaves sign and order of columns free is not tested by this, and with V̇ ~ 1/g it only sees ‖V‖.
    """
    prediction = at.prediction
    predicted = prediction.values.double() * torch.exp(prediction.log_scale.double())[:, None, None]
    differences = (at.values.value - predicted).abs_()
    close = differences < predicted.abs_().mul_(RELATIVE).add_(ABSOLUTE)  # not even infinity is close to infinity
    return close.flatten(1).all(dim=1).to(torch.float64)


ALLCLOSE = Measure(
    "allclose",
    "1 if every entry equals the prediction to 1e-5 + 0.1 %",
    allclose,
    closer="higher",
    ideal=1.0,
    guard=PREDICTED,
    every_theory=False,
    every_reference=False,
)
