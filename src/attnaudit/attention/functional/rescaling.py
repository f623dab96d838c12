"""Scaled Attention: softmax attention whose values are first multiplied by (I - S)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.attention.functional.dot_product import Observer, softmax, symmetric
from attnaudit.attention.functional.log_sums import log_row_sums
from attnaudit.errors import ShapeError, UsageError
from attnaudit.numerics.masks import Mask, merged_mask, real_tokens, visible, visible_mean

#: In place of the l of padding: far below that of a real token, which is at least 0 because it sees itself.
_UNSEEN = -1e4


def scaled(
    query: Float[Tensor, "batch heads tokens dim"],
    key: Float[Tensor, "batch heads tokens dim"],
    value: Float[Tensor, "batch heads tokens value_dim"],
    *,
    matrix: Float[Tensor, "heads size size"] | None = None,
    alpha: Float[Tensor, ""] | float | None = None,
    mask: Mask | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
    observe: Observer | None = None,
) -> Float[Tensor, "batch heads tokens value_dim"]:
    """H = softmax(QKᵀ·scale + mask) (I - S) V (Teo & Nguyen 2024, Remark 3); S as in `rescaled_values`."""
    moved = rescaled_values(key, value, matrix=matrix, alpha=alpha, mask=mask, is_causal=is_causal, scale=scale)
    return softmax(query, key, moved, mask=mask, is_causal=is_causal, dropout=dropout, scale=scale, observe=observe)


def rescaled_values(
    key: Float[Tensor, "batch heads tokens dim"],
    value: Float[Tensor, "batch heads tokens value_dim"],
    *,
    matrix: Float[Tensor, "heads size size"] | None = None,
    alpha: Float[Tensor, ""] | float | None = None,
    mask: Mask | None = None,
    is_causal: bool = False,
    scale: float | None = None,
) -> Float[Tensor, "batch heads tokens value_dim"]:
    """V' = (I - S) V.

    * `matrix`: the given S, one per head, shared by all inputs (learned; in the authors' code without 1/N).
    * `alpha`: S = α·softmax(KKᵀ·scale), one additional attention.
    * neither: the exact S(j,j') = g(k_j') / (N·g(k_j)), g(k_j) = Σ_j' exp(scale·k_j·k_j'). It has rank one and S² = S,
      so V'_j = V_j - exp(-l_j)·mean_j'(exp(l_j') V_j') with l = log g: no matrix is built. At the kernel-PCA solution
      S V = 0, and Scaled Attention *is* softmax attention. Otherwise S grows like a ratio of exponentials of squared
      keys: half precision overflows for keys of ordinary size.

    Sums, means and rows of S run over the tokens that token j may see.
    """
    if matrix is not None and alpha is not None:
        raise UsageError("Scaled Attention accepts a matrix S or a factor alpha, not both.")
    if matrix is not None:
        return value - _masked(matrix, value, mask, is_causal) @ value
    if alpha is not None:
        return value - alpha * symmetric(key, value, mask=mask, is_causal=is_causal, scale=scale)
    with torch.autocast(value.device.type, enabled=False):
        return (value - _rank_one(key, value, mask, is_causal, scale)).to(value.dtype)


def _rank_one(key: Tensor, value: Tensor, mask: Mask | None, is_causal: bool, scale: float | None) -> Tensor:
    """S V for the exact S, in float64 if means differ between tokens, because l may then differ by hundreds."""
    wide = torch.promote_types(value.dtype, torch.float64 if is_causal or mask is not None else torch.float32)
    value = value.to(wide)
    log_sums = log_row_sums(key, mask=mask, is_causal=is_causal, scale=scale)[..., None].to(wide)
    real = real_tokens(mask)
    if is_causal and (mask is None or mask.shape[-2] == 1):
        return _running(log_sums, value, None if real is None else real[..., None])
    shown = log_sums if real is None else log_sums.masked_fill(~real[..., None], -torch.inf)
    top = shown.amax(dim=-2, keepdim=True).detach()
    mean = visible_mean((shown - top).exp() * value, mask, is_causal)
    return (top - log_sums).exp() * mean


def _running(log_sums: Tensor, value: Tensor, real: Tensor | None) -> Tensor:
    """The same for a causal mask, with or without padding: exp(-l_j)·mean_{j' ≤ j}(exp(l_j') V_j') over real tokens.

    In the log domain, positive and negative parts separately: a later, larger l must not affect earlier tokens.
    """
    seen, own = log_sums, log_sums
    count = torch.arange(1, value.shape[-2] + 1, device=value.device, dtype=value.dtype)[:, None]
    if real is not None:
        seen = log_sums.masked_fill(~real, _UNSEEN)
        # Rows of padding are nobody's, and must be finite all the same.
        own = torch.where(real, log_sums, seen.cummax(dim=-2).values.detach())
        count = real.cumsum(dim=-2).clamp_min(1).to(value.dtype)
    tiny = torch.finfo(value.dtype).tiny
    parts = (torch.logcumsumexp(seen + part.clamp_min(tiny).log(), dim=-2) for part in (value, -value))
    positive, negative = (torch.exp(part - own) for part in parts)
    return (positive - negative) / count


def _masked(matrix: Tensor, value: Tensor, mask: Mask | None, is_causal: bool) -> Tensor:
    """The learned S in the type of the values, with 0 where a token may not be seen."""
    tokens = value.shape[-2]
    if matrix.shape[-3:] != (value.shape[1], tokens, tokens):
        heads, size = matrix.shape[-3], matrix.shape[-1]
        raise ShapeError(
            f"The learned S of Scaled Attention has a fixed size of {heads} heads and {size} tokens, but the input has "
            f"{value.shape[1]} heads and {tokens} tokens."
        )
    matrix = matrix.to(value.dtype)
    mask, is_causal = merged_mask(mask, is_causal, tokens)
    if is_causal:
        return matrix.tril()
    return matrix if mask is None else matrix.masked_fill(~visible(mask), 0)
