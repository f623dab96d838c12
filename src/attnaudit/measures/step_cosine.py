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
    cosines: Tensor = torch.nn.functional.cosine_similarity(found, wanted, dim=-1)
    return cosines.mean(dim=-1)


STEP_COSINE = Measure(
    "step_cosine",
    "mean cosine of outputs and predicted outputs over tokens, both centred",
    step_cosine,
    closer="higher",
    ideal=1.0,
    guard=PREDICTED_OUTPUTS,
    default=False,
)
