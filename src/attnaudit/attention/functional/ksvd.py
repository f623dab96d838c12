"""Primal-Attention: kernel SVD of an asymmetric attention kernel in primal form, without scores and softmax."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from attnaudit.numerics.masks import Mask, padding


class ScorePair(NamedTuple):
    """Projections onto the left and the right singular directions, `(batch, heads, tokens, rank)`."""

    e: Tensor
    r: Tensor


def primal(
    query: Float[Tensor, "batch heads tokens dim"],
    key: Float[Tensor, "batch heads tokens dim"],
    weight_e: Float[Tensor, "*batch heads dim rank"],
    weight_r: Float[Tensor, "*batch heads dim rank"],
    *,
    mask: Mask | None = None,
    is_causal: bool = False,
) -> ScorePair:
    """E = φ(q) W_e and R = φ(k) W_r with φ(z) = z / ‖z‖ (Chen et al. 2023, eq. 6 and section 4).

    If causal, queries and keys are first replaced by their running means. The weights are shared by all tokens, so
    padding is hidden only in `combined_weight` and in the objective.
    """
    real = padding(mask, "Primal-Attention")
    exact = torch.promote_types(query.dtype, torch.float32)  # running sums overflow in half precision
    query, key = query.to(exact), key.to(exact)
    if is_causal:
        counted = torch.ones_like(query[..., :1]) if real is None else real.mT.to(exact)
        query, key = (_running_mean(rows, counted) for rows in (query, key))
    units = (F.normalize(rows, dim=-1) for rows in (query, key))
    return ScorePair(
        *(unit.to(weight.dtype) @ weight for unit, weight in zip(units, (weight_e, weight_r), strict=True))
    )


def _running_mean(rows: Tensor, weight: Tensor) -> Tensor:
    """The mean over all tokens up to each one, weighted by `weight` (batch, heads, tokens, 1)."""
    return (rows * weight).cumsum(dim=-2) / weight.cumsum(dim=-2).clamp_min(1)


def combined_weight(
    source: Float[Tensor, "batch heads tokens dim"],
    weight: Float[Tensor, "heads rows rank"],
    *,
    mask: Mask | None = None,
) -> Float[Tensor, "batch heads dim rank"]:
    """W_{·|X} = f(X)ᵀ W: data-dependent weights from evenly spaced rows of the layer's input, split into heads.

    f(X) has as many rows as W; an input with fewer tokens uses all of them and the first rows of W. Rows are chosen
    among the real tokens of each input, not the padding.
    """
    tokens, rows = source.shape[-2], weight.shape[-2]
    real = padding(mask, "Primal-Attention")
    place = torch.arange(rows, device=source.device)
    if real is None:
        # Integer division picks the same rows on every device and in every precision.
        chosen = place * (tokens - 1) // max(rows - 1, 1) if tokens > rows else place[:tokens]
        source = source.index_select(-2, chosen)
        return source.mT @ weight[:, : source.shape[-2]].to(source.dtype)
    is_real = real[:, 0, 0]
    count = is_real.sum(dim=-1, keepdim=True)
    spaced = torch.where(
        count > rows, place * (count - 1).clamp_min(0) // max(rows - 1, 1), place.expand(len(is_real), -1)
    )
    order = torch.argsort((~is_real).to(torch.uint8), dim=-1, stable=True)  # real tokens first, in order
    chosen = order.gather(1, spaced.clamp_max(tokens - 1))[:, None, :, None].expand(
        -1, source.shape[1], -1, source.shape[-1]
    )
    picked = source.gather(-2, chosen) * (place < count)[:, None, :, None].to(source.dtype)
    return picked.mT @ weight.to(source.dtype)


def ksvd_objective(
    scores: ScorePair,
    singular: Float[Tensor, "heads rank"],
    weight_e: Float[Tensor, "heads rows rank"],
    weight_r: Float[Tensor, "heads rows rank"],
    *,
    mask: Mask | None = None,
    reduction: Literal["mean", "sum"] = "mean",
) -> Float[Tensor, "batch heads"]:
    """J = ½ Σ_i e_iᵀΛe_i + ½ Σ_j r_jᵀΛr_j - Tr(W_eᵀW_r) of every head, Λ = diag(`singular`) (Chen et al., eq. 6).

    The paper sums over tokens, its code takes means. J = 0 at every stationary point (Lemma 4.2), so J² serves as a
    regulariser; but J = 0 does not prove stationarity, as J = 0 also at W = 0: see `kkt_residual`.
    """
    exact = torch.promote_types(scores.e.dtype, torch.float32)
    energy = ((scores.e.to(exact).square() + scores.r.to(exact).square()) * singular[:, None]).sum(dim=-1)
    trace = (weight_e * weight_r).sum(dim=(-2, -1))
    real = padding(mask, "Primal-Attention")
    if real is not None:
        energy = energy * real[..., 0, :]
    total = energy.sum(dim=-1)
    if reduction == "mean":
        total = total / (energy.shape[-1] if real is None else real.sum(dim=(-2, -1)).clamp_min(1))
    return total / 2 - trace


def kkt_residual(
    scores: ScorePair,
    query: Float[Tensor, "batch heads tokens dim"],
    key: Float[Tensor, "batch heads tokens dim"],
    singular: Float[Tensor, "heads rank"],
    weight_e: Float[Tensor, "*batch heads dim rank"],
    weight_r: Float[Tensor, "*batch heads dim rank"],
    *,
    reduction: Literal["mean", "sum"] = "mean",
) -> Float[Tensor, "batch heads"]:
    """The distance of the weights from a stationary point of J: 0 at one, about 1 if unrelated, NaN at W = 0.

    With data-independent weights the conditions are W_e = Φ(K)ᵀ r Λ and W_r = Φ(Q)ᵀ e Λ for a J that sums over tokens,
    with Λ/N for one that takes means; this is the root of their squared errors divided by the squared norms of both
    sides. `reduction` is that of `ksvd_objective`.
    """
    weighted = singular[:, None] / (query.shape[-2] if reduction == "mean" else 1)
    expected_e = F.normalize(key, dim=-1).mT @ (scores.r * weighted)
    expected_r = F.normalize(query, dim=-1).mT @ (scores.e * weighted)
    return mismatch((weight_e, weight_r), (expected_e, expected_r))


def mismatch(
    found: tuple[Float[Tensor, "*heads rows rank"], Float[Tensor, "*heads others rank"]],
    expected: tuple[Float[Tensor, "*batch rows rank"], Float[Tensor, "*batch others rank"]],
) -> Float[Tensor, "*batch"]:
    """The root of the squared differences of two pairs of matrices, divided by the squared norms of all four.

    0 for equal pairs, about 1 for unrelated ones, NaN if all are zero.
    """

    def size(left: Tensor, right: Tensor) -> Tensor:
        return left.square().sum(dim=(-2, -1)) + right.square().sum(dim=(-2, -1))

    different = size(found[0] - expected[0], found[1] - expected[1])
    return (different / (size(*found) + size(*expected))).sqrt()
