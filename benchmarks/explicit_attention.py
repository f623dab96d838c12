"""The attention variants written out with every tokens x tokens matrix, from their formulas.

What the library's versions are compared with: in value and gradient by the tests, in time and memory by
`attention_cost.py`. Tensors are (batch, heads, tokens, dim).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def attention_matrix(query: Tensor, key: Tensor, hidden: Tensor | None = None) -> Tensor:
    scores = query @ key.mT
    scores = scores / math.sqrt(query.shape[-1])
    if hidden is not None:
        scores = scores.masked_fill(hidden, -torch.inf)
    return torch.softmax(scores, dim=-1)


def softmax(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None = None) -> Tensor:
    return attention_matrix(query, key, hidden) @ value


def symmetric(key: Tensor, value: Tensor, hidden: Tensor | None = None) -> Tensor:
    return attention_matrix(key, key, hidden) @ value


def exact_matrix(key: Tensor, hidden: Tensor | None = None) -> Tensor:
    """S(j, j') = g(k_j') / (N g(k_j)); under a mask N counts, and both sums run over, the tokens that j sees."""
    kernel = torch.exp(key @ key.mT / math.sqrt(key.shape[-1]))
    seen = torch.ones_like(kernel) if hidden is None else (~hidden).to(kernel.dtype).expand_as(kernel)
    g = (kernel * seen).sum(dim=-1)
    return seen * g[..., None, :] / g[..., :, None] / seen.sum(dim=-1, keepdim=True)


def scaled(query: Tensor, key: Tensor, value: Tensor, matrix: Tensor, hidden: Tensor | None = None) -> Tensor:
    identity = torch.eye(key.shape[-2], dtype=key.dtype, device=key.device)
    return attention_matrix(query, key, hidden) @ ((identity - matrix) @ value)


def rpc(
    key: Tensor,
    value: Tensor,
    *,
    iterations: int = 4,
    lam: float = 4.0,
    threshold: str = "lam*mu",
    mu_width: str = "model",
    dual_sign: int = -1,
    query: Tensor | None = None,
    hidden: Tensor | None = None,
) -> Tensor:
    """The loop as it is published, with all five matrices and the last dual update that nobody reads."""
    heads, tokens, dim = key.shape[1:]
    size = key.abs().sum(dim=-1)
    if hidden is None:
        total, count = size.sum(dim=-1)[..., None, None], tokens
    else:
        seen = (~hidden).to(key.dtype)
        total, count = (seen * size[..., None, :]).sum(dim=-1, keepdim=True), seen.sum(dim=-1, keepdim=True)
    mu = count * (dim * heads if mu_width == "model" else dim) / (4 * total)
    tau = lam * mu if threshold == "lam*mu" else lam / mu
    low_rank, dual = torch.zeros_like(key), torch.zeros_like(key)
    for _ in range(iterations):
        residual = key - low_rank + dual
        sparse = torch.sign(residual) * torch.clamp(residual.abs() - tau, min=0)
        target = key - sparse + dual_sign * dual
        low_rank = attention_matrix(target if query is None else query, target, hidden) @ value
        dual = dual + (key - low_rank - sparse)
    return low_rank
