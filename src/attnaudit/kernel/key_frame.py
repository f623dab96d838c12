"""Coordinates of a head's keys that do not depend on how the network writes them.

Keys are known up to k → M⁻¹k + c. Whitened keys x = (k - m)C^-½ are known up to a rotation, and the eigenvectors of
E[‖x‖² x xᵀ], with signs such that E[x_p³] > 0, fix that too (fourth-order blind identification, Cardoso 1989). What is
computed in these coordinates is the same in every gauge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.solvers import eigenpairs

#: Directions with less than this share of the largest variance are treated as if they had that much.
_NEGLIGIBLE = 1e-10


@dataclass(frozen=True)
class KeyFrame:
    """x = (k - `mean`) @ `axes`, with covariance 1 over the tokens of some inputs."""

    mean: Float[Tensor, "heads dim"]
    axes: Float[Tensor, "heads dim dim"]

    @staticmethod
    def of(keys: Sequence[Float[Tensor, "heads _ dim"]]) -> KeyFrame:
        """The frame of all these keys; not finite for a head whose keys are all equal."""
        tokens = torch.cat([own.double() for own in keys], dim=1)
        mean = tokens.mean(dim=1)
        x = tokens - mean[:, None]
        sizes, directions = eigenpairs(x.mT @ x / x.shape[1])
        white = directions * sizes.clamp_min(_NEGLIGIBLE * sizes[:, -1:]).rsqrt()[:, None]
        x = x @ white
        _, turns = eigenpairs((x * x.square().sum(dim=-1, keepdim=True)).mT @ x / x.shape[1])
        skewed = (x @ turns).pow(3).sum(dim=1) < 0
        return KeyFrame(mean, white @ turns * torch.where(skewed, -1.0, 1.0)[:, None].to(white))
