"""Entropy and sparsity of attention layers, measured on request, in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnaudit.attention.base import Attention
from attnaudit.attention.functional import AttentionPass
from attnaudit.attention.functional.blocks import row_blocks, score_block
from attnaudit.numerics.masks import merged_mask, real_tokens


@dataclass(frozen=True)
class Diagnosis:
    """Measurements of one softmax attention of a layer.

    `entropy` in nats and `diagonal` (a token's attention to itself) are means over queries. For RPC-Attention, which
    splits keys into L + S, `nonzero` is the share of nonzero entries of S and `residual` is ‖K - L - S‖ / ‖K‖. Padding
    is ignored.
    """

    entropy: Float[Tensor, "batch heads"]
    diagonal: Float[Tensor, "batch heads"]
    nonzero: Float[Tensor, "batch heads"] | None = None
    residual: Float[Tensor, "batch heads"] | None = None


@contextmanager
def diagnosing(model: nn.Module) -> Iterator[dict[str, list[Diagnosis]]]:
    """Collect a `Diagnosis` of every attention run inside the block, by layer name; RPC adds one per iteration.

    Inside the block the model cannot be pickled.
    """
    found: dict[str, list[Diagnosis]] = {name: [] for name in _layers(model)}
    with observing(model, lambda name, step: found[name].append(diagnose(step))):
        yield found


@contextmanager
def observing(model: nn.Module, note: Callable[[str, AttentionPass], None]) -> Iterator[None]:
    """Inside the block, call `note` with the layer's name and every attention it runs."""
    layers = _layers(model)
    before = {name: layer.observe for name, layer in layers.items()}
    for name, layer in layers.items():
        layer.observe = partial(note, name)
    try:
        yield
    finally:
        for name, layer in layers.items():
            layer.observe = before[name]


def _layers(model: nn.Module) -> dict[str, Attention]:
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, Attention)}


@torch.no_grad()
def diagnose(step: AttentionPass) -> Diagnosis:
    """Entropy and diagonal mass of one attention, and for RPC the split of K."""
    tokens = step.query.shape[-2]
    mask, is_causal = merged_mask(step.mask, step.is_causal, tokens)
    real = real_tokens(mask)
    weight = torch.ones_like(step.query[..., 0], dtype=torch.float64)
    weight = weight if real is None else weight * real
    count = weight.sum(dim=-1)
    entropy, diagonal = (
        (weight * part).sum(dim=-1) / count
        for part in _entropy_and_diagonal(step._replace(mask=mask, is_causal=is_causal))
    )
    if step.sparse is None or step.residual is None:
        return Diagnosis(entropy, diagonal)

    def size(matrix: Tensor) -> Tensor:
        return (matrix.double().square().sum(dim=-1) * weight).sum(dim=-1).sqrt()

    return Diagnosis(
        entropy,
        diagonal,
        nonzero=((step.sparse != 0).double().mean(dim=-1) * weight).sum(dim=-1) / count,
        residual=size(step.residual) / size(step.original),
    )


def _entropy_and_diagonal(step: AttentionPass) -> tuple[Tensor, Tensor]:
    """Entropy and diagonal of every query; 0 for a query that sees no key."""
    query, key = (part.to(torch.promote_types(part.dtype, torch.float32)) for part in (step.query, step.key))
    entropy, diagonal = [], []
    for rows in row_blocks(query):
        scores = score_block(query, key, rows, mask=step.mask, is_causal=step.is_causal, scale=step.scale)
        attention = torch.softmax(scores, dim=-1).nan_to_num(0.0)
        entropy.append(torch.special.entr(attention).sum(dim=-1))
        diagonal.append(attention.diagonal(offset=rows.start, dim1=-2, dim2=-1))
    return torch.cat(entropy, dim=-1), torch.cat(diagonal, dim=-1)
