"""Do outputs point where a theory says?"""

from __future__ import annotations

import torch
from torch import Tensor

from attnaudit.kernel.gram import PerHead
from attnaudit.measures.explained_variance import PREDICTED_OUTPUTS
from attnaudit.measures.measure import Measure
from attnaudit.measures.measure_input import MeasureInput


def step_cosine(at: MeasureInput) -> PerHead:
    """The mean over tokens of cos(o_i, ô_i), both without their mean over tokens, which is the same for all."""
    predicted = at.prediction.outputs
    output = at.heads.output.double()
    if predicted is None:
        return torch.full_like(output[:, 0, 0], torch.nan)
    found, wanted = (own - own.mean(dim=1, keepdim=True) for own in (output, predicted.double()))
    # torch's own cosine takes lengths below 1e-8 for that, and the length of a step says nothing.
    cosines: Tensor = torch.linalg.vecdot(_direction(found), _direction(wanted))
    return cosines.mean(dim=-1)


def _direction(steps: Tensor) -> Tensor:
    """Rows at unit length; those of zeros stay."""
    length = torch.linalg.vector_norm(steps, dim=-1, keepdim=True)
    unit: Tensor = steps / length.where(length > 0, 1)
    return unit


STEP_COSINE = Measure(
    "step_cosine",
    "mean cosine of outputs and predicted outputs over tokens, both centred",
    step_cosine,
    closer="higher",
    ideal=1.0,
    guard=PREDICTED_OUTPUTS,
    default=False,
)
