"""The study's elementwise test: is V equal to the prediction, number by number?"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.measures.guards import EXACT, Guards

RELATIVE, ABSOLUTE = 1e-3, 1e-5  # the script's values; the paper prints them the other way round


def elementwise(heads: Heads, prediction: Prediction, guards: Guards = EXACT) -> dict[str, Float[Tensor, "heads"]]:
    """1 where |V - V̇| ≤ 1e-5 + 1e-3·|V̇| for every entry, else 0.

    A theory that leaves sign and order of columns free is not tested by this, and with V̇ ~ 1/g it only sees ‖V‖.
    """
    predicted = prediction.values.double() * torch.exp(prediction.log_scale.double())[:, None, None]
    value = heads.value.double()
    close = torch.isclose(value, predicted, rtol=RELATIVE, atol=ABSOLUTE).all(dim=-1).all(dim=-1)
    return {"allclose": close.to(torch.float64)}
