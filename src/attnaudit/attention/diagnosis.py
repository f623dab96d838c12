"""What an attention layer does with its tokens: measured on request, in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnaudit.attention.base import Attention
from attnaudit.attention.functional import Pass
from attnaudit.attention.functional.blocks import row_blocks, score_block
from attnaudit.attention.functional.masks import one_mask, real_tokens


@dataclass(frozen=True)
class Diagnosis:
    """One softmax attention of a layer; the last two only where keys are split into L + S.

    `entropy` in nats and `diagonal` (a token's attention to itself) are means over queries; `nonzero` is the share of
    entries of S that are not zero; `residual` is ‖K - L - S‖ / ‖K‖. Padding does not count.
    """

    entropy: Float[Tensor, "batch heads"]
    diagonal: Float[Tensor, "batch heads"]
    nonzero: Float[Tensor, "batch heads"] | None = None
    residual: Float[Tensor, "batch heads"] | None = None


@contextmanager
def diagnosing(model: nn.Module) -> Iterator[dict[str, list[Diagnosis]]]:
    """Inside the block each of our attention layers notes, by name, what it attends with: RPC one entry per iteration.

    While it lasts the model holds functions that cannot be pickled.
    """
    found: dict[str, list[Diagnosis]] = {name: [] for name in _layers(model)}
    with observing(model, lambda name, seen: found[name].append(diagnose(seen))):
        yield found


@contextmanager
def observing(model: nn.Module, note: Callable[[str, Pass], None]) -> Iterator[None]:
    """Inside the block `note` is given the name of the layer and every attention that it runs."""
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
def diagnose(seen: Pass) -> Diagnosis:
    """Entropy and diagonal mass of one attention, and for RPC how K was split."""
    tokens = seen.query.shape[-2]
    mask, is_causal = one_mask(seen.mask, seen.is_causal, tokens)
    real = real_tokens(mask)
    weight = torch.ones_like(seen.query[..., 0], dtype=torch.float64)
    weight = weight if real is None else weight * real
    count = weight.sum(dim=-1)
    entropy, diagonal = (
        (weight * part).sum(dim=-1) / count
        for part in _entropy_and_diagonal(seen._replace(mask=mask, is_causal=is_causal))
    )
    if seen.sparse is None or seen.residual is None:
        return Diagnosis(entropy, diagonal)

    def size(matrix: Tensor) -> Tensor:
        return (matrix.double().square().sum(dim=-1) * weight).sum(dim=-1).sqrt()

    return Diagnosis(
        entropy,
        diagonal,
        nonzero=((seen.sparse != 0).double().mean(dim=-1) * weight).sum(dim=-1) / count,
        residual=size(seen.residual) / size(seen.original),
    )


def _entropy_and_diagonal(seen: Pass) -> tuple[Tensor, Tensor]:
    """Of every query; 0 for one that sees no key."""
    query, key = (part.to(torch.promote_types(part.dtype, torch.float32)) for part in (seen.query, seen.key))
    entropy, diagonal = [], []
    for rows in row_blocks(query):
        scores = score_block(query, key, rows, mask=seen.mask, is_causal=seen.is_causal, scale=seen.scale)
        attention = torch.softmax(scores, dim=-1).nan_to_num(0.0)
        entropy.append(torch.special.entr(attention).sum(dim=-1))
        diagonal.append(attention.diagonal(offset=rows.start, dim1=-2, dim2=-1))
    return torch.cat(entropy, dim=-1), torch.cat(diagonal, dim=-1)
