"""How much of the variance of tokens the directions of keys leave unexplained: the objective of PCA, as a penalty."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def unexplained_variance(
    tokens: Float[Tensor, "tokens width"], directions: Float[Tensor, "*heads width rank"]
) -> Float[Tensor, "*heads"]:
    """1 - tr(PΣ̂) / tr(Σ̂), with Σ̂ the covariance of the tokens and P the projector on the span of the directions.

    It is smallest, over all directions, at the leading eigenvectors of Σ̂ (Eckart & Young 1936), and does not depend on
    the size of tokens or directions, nor on the basis of their span. For one direction μ it is 1 - μᵀΣ̂μ/(|μ|² tr Σ̂),
    whose gradient flow is Oja's (1982). In float32 or wider.
    """
    exact = torch.promote_types(tokens.dtype, torch.float32)
    with torch.autocast(tokens.device.type, enabled=False):
        centred = tokens.to(exact) - tokens.to(exact).mean(dim=0)
        basis, _ = torch.linalg.qr(directions.to(exact))
        share: Tensor = (centred @ basis).square().sum(dim=(-2, -1)) / centred.square().sum()
    return 1 - share
