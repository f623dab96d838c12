"""The projection error of kernel PCA, exactly, with the best order and signs: one assignment problem, not d! trials.

With unit axes u_m the projection of a query is c_im = φ(q_i)ᵀu_m = Σ_j softmax_ij V̇_jm. The claim h_i ≈ c_i, up to
order π and signs s of the components, has the error

    J(π, s) = mean_i (‖φ(q_i)‖² + ‖h_i‖²) - (2/N) Σ_m s_m M_{m,π(m)},      M = HᵀC,

so the best π and s maximise Σ|M_{m,π(m)}|. Allowing any rotation gives the nuclear norm of M instead, and kernel PCA
itself attains mean_i (‖φ(q_i)‖² - ‖c_i‖²), the floor: floor ≤ rotated ≤ matched, always.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.solvers import singular_values
from attnaudit.measures.assignment import matched


def projection_measures(
    heads: Heads,
    prediction: Prediction,
    phi: Float[Tensor, "heads queries"],
) -> dict[str, Float[Tensor, "heads"]]:
    """`projection_error_matched`, `_rotated` and `_floor`; `prediction` must have unit axes."""
    output = heads.output.double()
    scale = torch.exp(prediction.log_scale.double())[:, None, None]
    projected = heads.attended(prediction.values.double() * scale)
    product = output.mT @ projected
    nuclear = singular_values(product).sum(dim=-1)
    both = phi.mean(dim=-1) + output.square().sum(dim=-1).mean(dim=-1)
    queries = output.shape[1]
    return {
        "projection_error_matched": both - 2 / queries * matched(product.abs()).sum(dim=-1),
        "projection_error_rotated": both - 2 / queries * nuclear,
        "projection_error_floor": (phi - projected.square().sum(dim=-1)).mean(dim=-1),
    }
