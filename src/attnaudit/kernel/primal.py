"""The kernel of a Primal-Attention layer and its singular value decomposition, without a tokens x tokens matrix.

Per input and head K = Φ_q FᵀF Φ_kᵀ (Chen et al. 2023, section 4), with Φ_q and Φ_k (tokens x dim) the normalised
queries and keys and F = f(X) (rows x dim). Its rank is at most dim. With Φ_q = Q_q T_q and Φ_k = Q_k T_k (QR),

    K = Q_q (T_q FᵀF T_kᵀ) Q_kᵀ,     E = Φ_q FᵀW_e = Q_q (T_q FᵀW_e),     R = Φ_k FᵀW_r = Q_k (T_k FᵀW_r),

so that all angles and lengths can be read in the coordinates of Q_q and Q_k, where K is dim x dim at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from attnaudit.attention.functional import ScorePair
from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.kernel.gram import finite_heads
from attnaudit.numerics.threads import torch_threads


@dataclass(frozen=True)
class PrimalKernel:
    """K in the coordinates of Q_q and Q_k: `matrix` = u diag(`values`) vᵀ, largest first, and T_q, T_k.

    `rank` counts the singular values above rounding; all are NaN, and the rank is 0, for heads that are not finite or
    whose kernel overflows.
    """

    query_factor: Float[Tensor, "heads left dim"]
    key_factor: Float[Tensor, "heads right dim"]
    matrix: Float[Tensor, "heads left right"]
    left: Float[Tensor, "heads left values"]
    values: Float[Tensor, "heads values"]
    right: Float[Tensor, "heads right values"]
    rank: Int64[Tensor, "heads"]

    def scores(self, heads: PrimalHeads) -> ScorePair:
        """E and R of heads with this kernel, in its coordinates."""
        return ScorePair(
            self.query_factor @ (heads.rows.mT @ heads.weight_e),
            self.key_factor @ (heads.rows.mT @ heads.weight_r),
        )


def primal_scores(heads: PrimalHeads) -> ScorePair:
    """E and R, `(heads, tokens, rank)`."""
    return ScorePair(
        heads.query @ (heads.rows.mT @ heads.weight_e),
        heads.key @ (heads.rows.mT @ heads.weight_r),
    )


def finite_primal(heads: PrimalHeads) -> Bool[Tensor, "heads"]:
    """Which heads hold nothing but numbers."""
    parts = (heads.query, heads.key, heads.rows, heads.weight_e, heads.weight_r, heads.singular[..., None])
    return torch.stack([finite_heads(part) for part in parts]).all(dim=0)


def primal_kernel(heads: PrimalHeads) -> PrimalKernel:
    """The decomposition of every head's kernel."""
    lost = ~finite_primal(heads)[:, None, None]
    query, key, rows = (part.masked_fill(lost, 0.0) for part in (heads.query, heads.key, heads.rows))
    with torch_threads(1):
        query_factor, key_factor = (torch.linalg.qr(part, mode="r")[1] for part in (query, key))
        matrix = (query_factor @ rows.mT) @ (key_factor @ rows.mT).mT
        lost = lost | ~finite_heads(matrix)[:, None, None]
        left, values, right = torch.linalg.svd(matrix.masked_fill(lost, 0.0), full_matrices=False)
    rounding = values[:, :1] * max(heads.query.shape[1:]) * torch.finfo(values.dtype).eps
    return PrimalKernel(
        query_factor,
        key_factor,
        matrix,
        left,
        values.masked_fill(lost[..., 0], torch.nan),
        right.mT,
        (values > rounding).sum(dim=-1),
    )
