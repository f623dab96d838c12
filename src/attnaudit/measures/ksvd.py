"""Does a Primal-Attention layer find the singular vectors of its kernel?

Chen et al. (2023, eq. 6) maximise a sum over tokens; their code, and ours, has means over the N tokens,

    J = 1/2N Σ_i e_iᵀΛe_i + 1/2N Σ_j r_jᵀΛr_j - Tr(W_eᵀW_r),     E = A W_e,  R = B W_r,  A = Φ_q Fᵀ,  B = Φ_k Fᵀ.

Setting its derivatives by W_e and W_r to zero gives W_r = AᵀEΛ/N and W_e = BᵀRΛ/N; multiplied by B and A, with K = ABᵀ,

    E = K R Λ/N,     R = Kᵀ E Λ/N :

columns of E and R are pairs of singular vectors of K, with singular values N/Λ where the paper, which sums, has 1/Λ.
J = 0 there (Lemma 4.2), but also at W = 0 and on a whole surface besides, so it is told and decides nothing.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from attnaudit.attention.functional import ScorePair, ksvd_objective
from attnaudit.attention.functional.ksvd import mismatch
from attnaudit.kernel.primal import PrimalHeads, PrimalKernel
from attnaudit.numerics.threads import torch_threads


def ksvd_measures(heads: PrimalHeads, kernel: PrimalKernel) -> dict[str, Float[Tensor, "heads"]]:
    """Overlaps of spans, residual of the dual equations, and J; NaN where `why_missing` has a reason.

    `ksvd_left_overlap` is ‖U_sᵀQ_E‖²_F / s, U_s being the s leading left singular vectors of K and Q_E an orthonormal
    basis of the span of E; `ksvd_right_overlap` the same of R. E lies in the column space of K whatever W is, so chance
    is s/rank K or more, not s/N. `ksvd_dual_residual` is the root of the squared errors of both dual equations over the
    squared size of their sides: 0 at a kernel SVD, about 1 if unrelated.
    """
    found = kernel.scores(heads)
    per_token = heads.singular[:, None] / heads.tokens
    expected = (kernel.matrix @ (found.r * per_token), kernel.matrix.mT @ (found.e * per_token))
    decomposed = (kernel.rank >= heads.dim) & heads.finite
    both = ScorePair(*(scores[None] for scores in heads.scores))
    return {
        "ksvd_left_overlap": _overlap(kernel.left, found.e).where(decomposed, torch.nan),
        "ksvd_right_overlap": _overlap(kernel.right, found.r).where(decomposed, torch.nan),
        "ksvd_dual_residual": mismatch(found, expected),
        "ksvd_objective": ksvd_objective(both, heads.singular, heads.weight_e, heads.weight_r)[0],
    }


def _overlap(
    vectors: Float[Tensor, "heads rows values"], scores: Float[Tensor, "heads rows rank"]
) -> Float[Tensor, "heads"]:
    """Share of the leading vectors that lies in the span of the scores; columns count whatever their lengths."""
    size = scores.shape[-1]
    columns = F.normalize(scores.nan_to_num(), dim=-2, eps=torch.finfo(scores.dtype).tiny)
    with torch_threads(1):
        basis, lengths, _ = torch.linalg.svd(columns, full_matrices=False)
    spanned = lengths > lengths[:, :1] * max(scores.shape[1:]) * torch.finfo(scores.dtype).eps
    shared = (vectors[..., :size].mT @ basis).square().sum(dim=-2)
    overlap: Tensor = (shared * spanned).sum(dim=-1) / size
    return overlap.where(spanned.any(dim=-1), torch.nan)


def why_missing(heads: PrimalHeads, kernel: PrimalKernel) -> list[str | None]:
    """Why a number of a head is missing, if one is."""
    empty = [(scores == 0).all(dim=-1).all(dim=-1) for scores in kernel.scores(heads)]

    def reason(finite: bool, rank: int, nothing: bool) -> str | None:
        if not finite:
            return "queries, keys or weights are not finite"
        if rank < heads.dim:
            return f"the kernel has only {rank} singular values above rounding, fewer than {heads.dim}"
        return "E or R is zero, which has no direction" if nothing else None

    heads_by_head = zip(heads.finite.tolist(), kernel.rank.tolist(), (empty[0] | empty[1]).tolist(), strict=True)
    return [reason(*entry) for entry in heads_by_head]
