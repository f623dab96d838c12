"""The study's computation written the plain way, head by head, as the yardstick of the benchmarks.

Written from the formulas (float32 Gram matrix, dense centring products, one RBF kernel and one centring per HSIC term,
one forward pass per layer, scalar loops for γ), not from anyone's code; it is what a reader of the paper would type.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn


def keys_and_values(model: nn.Module, images: Tensor, layer: int) -> tuple[Tensor, Tensor]:
    """One full forward pass for one layer's (batch, heads, tokens, dim) keys and values."""
    seen: dict[str, Tensor] = {}
    attention = model.blocks[layer].attn
    handle = attention.qkv.register_forward_hook(lambda m, i, out: seen.update(qkv=out))
    with torch.no_grad():
        model(images)
    handle.remove()
    batch, tokens, _ = seen["qkv"].shape
    qkv = seen["qkv"].reshape(batch, tokens, 3, attention.num_heads, -1).permute(2, 0, 3, 1, 4)
    return qkv[1], qkv[2]


def predicted_values(key: Tensor) -> Tensor:
    n, d = key.shape
    kernel = torch.exp(key @ key.T / math.sqrt(d))
    mass = kernel.sum(dim=1)
    gram = kernel / (mass[:, None] * mass[None, :] + 1e-6)
    ones = torch.full((n, n), 1 / n)
    centred = gram - ones @ gram - gram @ ones + ones @ gram @ ones
    values, vectors = torch.linalg.eigh(centred)
    vectors = vectors[:, values.abs().argsort(descending=True)[:d]]
    weights = torch.diag(1 / mass)
    return weights @ vectors - weights @ ones @ vectors


def hsic(x: Tensor, y: Tensor) -> Tensor:
    n = len(x)
    projection = torch.eye(n) - torch.full((n, n), 1 / n)
    return ((projection @ x @ projection) * (projection @ y @ projection)).sum()


def radial_basis(x: Tensor) -> Tensor:
    squares = torch.cdist(x, x).square()
    return torch.exp(-squares / (2 * squares[squares > 0].median()))


def cka(kernel: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> float:
    cross = hsic(kernel(x), kernel(y))
    return float(cross / (hsic(kernel(x), kernel(x)).sqrt() * hsic(kernel(y), kernel(y)).sqrt() + 1e-10))


def similarity(key: Tensor, value: Tensor) -> dict[str, float]:
    predicted = predicted_values(key)
    rows, other = (m / (m.norm(dim=1, keepdim=True) + 1e-8) for m in (value, predicted))
    cosines = rows @ other.T
    matched = linear_sum_assignment(-cosines.numpy(force=True))
    return {
        "direct": float(cosines.diagonal().mean()),
        "matched": float(cosines[matched].mean()),
        "linear": cka(lambda x: x @ x.T, value, predicted),
        "kernel": cka(radial_basis, value, predicted),
        "allclose": float(torch.allclose(value, predicted, rtol=1e-3, atol=1e-5)),
    }


def gamma_component(gamma: Tensor) -> tuple[float, float]:
    """Mean absolute and relative difference of one component, pair by pair."""
    absolute, relative = [], []
    for i in range(len(gamma)):
        for j in range(i + 1, len(gamma)):
            difference = torch.abs(gamma[i] - gamma[j])
            absolute.append(difference)
            relative.append(difference / (torch.max(torch.abs(gamma[i]), torch.abs(gamma[j])) + 1e-10))
    return float(torch.stack(absolute).mean()), float(torch.stack(relative).mean())
