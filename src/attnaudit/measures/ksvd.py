"""Does a Primal-Attention layer find the singular vectors of its kernel?

Chen et al. (2023, eq. 6) maximise a sum over tokens; their code, and ours, has means over the N tokens,

    J = 1/2N Σ_i e_iᵀΛe_i + 1/2N Σ_j r_jᵀΛr_j - Tr(W_eᵀW_r),     E = A W_e,  R = B W_r,  A = Φ_q Fᵀ,  B = Φ_k Fᵀ.

Setting its derivatives by W_e and W_r to zero gives W_r = AᵀEΛ/N and W_e = BᵀRΛ/N; multiplied by B and A, with K = ABᵀ,

    E = K R Λ/N,     R = Kᵀ E Λ/N :

columns of E and R are pairs of singular vectors of K, with singular values N/Λ where the paper, which sums, has 1/Λ.
J = 0 there (Lemma 4.2), but also at W = 0 and on a whole surface besides, so it is shown and decides nothing.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from attnaudit.attention.functional import ScorePair, ksvd_objective
from attnaudit.attention.functional.ksvd import mismatch
from attnaudit.kernel.gram import PerHead
from attnaudit.kernel.primal import finite_primal, primal_scores
from attnaudit.measures.guards import Guard
from attnaudit.measures.measure import Measure, Scope
from attnaudit.measures.primal_input import PrimalInput
from attnaudit.numerics.threads import torch_threads


def left_overlap(at: PrimalInput) -> PerHead:
    """‖U_sᵀQ_E‖²_F / s, U_s the s leading left singular vectors of K and Q_E an orthonormal basis of the span of E.

    E lies in the column space of K whatever W is, so chance is s/rank K or more, not s/N.
    """
    return _overlap(at.kernel.left, at.scores.e).where(_decomposed(at), torch.nan)


def right_overlap(at: PrimalInput) -> PerHead:
    """The same of R and the right singular vectors."""
    return _overlap(at.kernel.right, at.scores.r).where(_decomposed(at), torch.nan)


def dual_residual(at: PrimalInput) -> PerHead:
    """The root of the squared errors of both dual equations over the squared size of their sides.

    0 at a kernel SVD, about 1 if unrelated.
    """
    per_token = at.heads.singular[:, None] / at.heads.tokens
    expected = (at.kernel.matrix @ (at.scores.r * per_token), at.kernel.matrix.mT @ (at.scores.e * per_token))
    return mismatch(at.scores, expected)


def objective(at: PrimalInput) -> PerHead:
    """J."""
    both = ScorePair(*(scores[None] for scores in primal_scores(at.heads)))
    return ksvd_objective(both, at.heads.singular, at.heads.weight_e, at.heads.weight_r)[0]


def _decomposed(at: PrimalInput) -> Tensor:
    return (at.kernel.rank >= at.heads.dim) & finite_primal(at.heads)


def _overlap(vectors: Float[Tensor, "heads rows values"], scores: Float[Tensor, "heads rows rank"]) -> PerHead:
    """Share of the leading vectors that lies in the span of the scores; columns count whatever their lengths."""
    size = scores.shape[-1]
    columns = F.normalize(scores.nan_to_num(), dim=-2, eps=torch.finfo(scores.dtype).tiny)
    with torch_threads(1):
        basis, lengths, _ = torch.linalg.svd(columns, full_matrices=False)
    spanned = lengths > lengths[:, :1] * max(scores.shape[1:]) * torch.finfo(scores.dtype).eps
    shared = (vectors[..., :size].mT @ basis).square().sum(dim=-2)
    overlap: Tensor = (shared * spanned).sum(dim=-1) / size
    return overlap.where(spanned.any(dim=-1), torch.nan)


def why_missing(at: PrimalInput) -> list[str | None]:
    """Why a number of a head is missing, if one is."""
    empty = [(scores == 0).all(dim=-1).all(dim=-1) for scores in at.scores]

    def reason(finite: bool, rank: int, zero: bool) -> str | None:
        if not finite:
            return "queries, keys or weights are not finite"
        if rank < at.heads.dim:
            return f"the kernel has only {rank} singular values above rounding, fewer than {at.heads.dim}"
        return "E or R is zero, which has no direction" if zero else None

    by_head = zip(
        finite_primal(at.heads).tolist(), at.kernel.rank.tolist(), (empty[0] | empty[1]).tolist(), strict=True
    )
    return [reason(*entry) for entry in by_head]


_DECOMPOSED = Guard("SVD", why_missing)

KSVD_LEFT_OVERLAP = Measure(
    "ksvd_left_overlap",
    "overlap of the span of E with the leading left singular vectors",
    left_overlap,
    scope=Scope.PRIMAL,
    closer="higher",
    ideal=1.0,
    guard=_DECOMPOSED,
)
KSVD_RIGHT_OVERLAP = Measure(
    "ksvd_right_overlap",
    "overlap of the span of R with the leading right singular vectors",
    right_overlap,
    scope=Scope.PRIMAL,
    closer="higher",
    ideal=1.0,
    guard=_DECOMPOSED,
)
KSVD_DUAL_RESIDUAL = Measure(
    "ksvd_dual_residual",
    "relative error of E = KRΛ/N and R = KᵀEΛ/N",
    dual_residual,
    scope=Scope.PRIMAL,
    closer="lower",
    ideal=0.0,
    guard=_DECOMPOSED,
)
KSVD_OBJECTIVE = Measure(
    "ksvd_objective",
    "J of the KSVD loss: 0 at a kernel SVD, but elsewhere too",
    objective,
    scope=Scope.PRIMAL,
    guard=_DECOMPOSED,
)
