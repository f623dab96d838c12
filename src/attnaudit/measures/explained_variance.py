"""How much of the values, or of the outputs, a theory explains that was fitted to other inputs.

R² = 1 - ‖V - V̂‖² / ‖V - V̄‖² per head and input, on inputs that the fit has not seen. V̄ is what one would predict
without the theory: the mean over the inputs of the fit, or what the theory says (`Prediction.baseline`). It is 1 if the
theory is exactly true, and 0 if it is no better than the mean: how much worse it is says nothing about the values.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.gram import PerHead, finite_heads
from attnaudit.measures.guards import PREDICTED, Guard
from attnaudit.measures.measure import Measure
from attnaudit.measures.measure_input import MeasureInput

#: The share of the variance that a map of low rank must explain.
_ENOUGH = 0.95


def explained_variance(at: MeasureInput) -> PerHead:
    """R² of the values."""
    return _explained(at.heads.value.double(), at.prediction.values.double(), at.prediction.baseline)


def output_explained_variance(at: MeasureInput) -> PerHead:
    """R² of the outputs; NaN of a theory that predicts none."""
    predicted = at.prediction.outputs
    output = at.heads.output.double()
    if predicted is None:
        return torch.full_like(output[:, 0, 0], torch.nan)
    return _explained(output, predicted.double(), at.prediction.baseline)


def _explained(
    found: Float[Tensor, "heads rows dim"],
    predicted: Float[Tensor, "heads rows dim"],
    baseline: Float[Tensor, "heads _ dim"] | None,
) -> PerHead:
    centre = found.mean(dim=1, keepdim=True) if baseline is None else baseline.double()
    left, total = ((found - other).square().sum(dim=(1, 2)) for other in (predicted, centre))
    return torch.where(total > 0, (1 - left / total).clamp_min(0), torch.nan)


def rank_needed(at: MeasureInput) -> PerHead:
    """The least rank with R² ≥ .95, as a share of the value columns; 1 if not even all of them explain so much.

    With axes E and residuals R = V - V̂, a map of rank r leaves ‖V‖² - Σ_{m≤r}(‖Ve_m‖² - ‖Re_m‖²).
    """
    axes, baseline = at.prediction.axes, at.prediction.baseline
    value = at.heads.value.double()
    if axes is None or baseline is None:
        return torch.full_like(value[:, 0, 0], torch.nan)
    values, residuals = ((value - other) @ axes for other in (baseline, at.prediction.values))
    gains = values.square().sum(dim=1) - residuals.square().sum(dim=1)
    reached = gains.cumsum(dim=-1) >= _ENOUGH * values.square().sum(dim=(1, 2))[:, None]
    columns = value.shape[-1]
    first = torch.where(reached.any(dim=-1), reached.to(torch.int8).argmax(dim=-1) + 1, columns)
    return (first / columns).double().masked_fill(~finite_heads(residuals), torch.nan)


def _without_outputs(at: MeasureInput) -> tuple[str | None, ...]:
    nothing = at.prediction.outputs is None
    return tuple(
        problem or ("the theory predicts no outputs" if nothing else None) for problem in at.prediction.problems
    )


def _has_outputs(at: MeasureInput) -> Tensor:
    predicted = at.prediction.outputs
    return torch.zeros_like(at.heads.scale, dtype=torch.bool) if predicted is None else finite_heads(predicted)


#: For measures of what a theory says of outputs.
PREDICTED_OUTPUTS = Guard("predicted outputs", _without_outputs, _has_outputs)

EXPLAINED_VARIANCE = Measure(
    "explained_variance",
    "share of the variance of V that the theory explains on inputs it was not fitted to",
    explained_variance,
    closer="higher",
    ideal=1.0,
    guard=PREDICTED,
    default=False,
)
OUTPUT_EXPLAINED_VARIANCE = Measure(
    "output_explained_variance",
    "the same for the outputs of the head",
    output_explained_variance,
    closer="higher",
    ideal=1.0,
    guard=PREDICTED_OUTPUTS,
    default=False,
)
RANK_NEEDED = Measure(
    "rank_needed",
    "least rank of a linear map of the inputs that explains 95 % of the variance of V, as a share of its columns",
    rank_needed,
    guard=PREDICTED,
    default=False,
)
